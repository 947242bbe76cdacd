"""Which tokens the reading head points at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "TokenSpan",
    "best_span",
]

_LONGEST = 30  # tokens of an answer; 99.9 % of SQuAD's are shorter


class TokenSpan(NamedTuple):
    """First and last token, and the log-chances of this span and of none."""

    start: int
    end: int
    score: float
    no_answer: float

    def shifted(self, by: int) -> TokenSpan:
        """The same, counted from another token."""
        return self._replace(start=self.start + by, end=self.end + by)


def best_span(logits: NDArray[np.float32], begin: int) -> TokenSpan | None:
    """
    The likeliest span of the candidate, which has the tokens from `begin` to the last but one.

    `logits` is (tokens, 2): start and end. The first token stands for "no answer here", and none
    but it and the candidate's tokens take part. None for a candidate without a token.
    """
    open_ones = np.concatenate([logits[:1], logits[begin:-1]]).astype(np.float64)
    count = len(open_ones) - 1
    if count < 1:
        return None
    shares = open_ones - np.logaddexp.reduce(open_ones, axis=0)
    starts, ends = shares[1:, 0], shares[1:, 1]
    both = starts[:, None] + ends[None, :]  # (first, last)
    place = np.arange(count)
    length = place[None, :] - place[:, None]
    both[(length < 0) | (length >= _LONGEST)] = -np.inf
    first, last = divmod(int(both.argmax()), count)
    return TokenSpan(begin + first, begin + last, float(both[first, last]), float(shares[0].sum()))
