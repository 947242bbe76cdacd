"""Span decoding: from the reader's start and end logits to the most probable answer span."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Span

__all__ = [
    "Span",
    "TokenSpan",
    "best_span",
]

_MAX_SPAN_TOKENS = 30  # 99.9 % of SQuAD's answers are shorter


class TokenSpan(NamedTuple):
    """The first and last token of a span, and the log probabilities as in `Span`."""

    start: int
    end: int
    score: float
    no_answer: float

    def shifted(self, by: int) -> TokenSpan:
        """The same span, with tokens counted from another one."""
        return self._replace(start=self.start + by, end=self.end + by)


def best_span(logits: NDArray[np.float32], begin: int) -> TokenSpan | None:
    """
    The most probable span of a candidate whose tokens go from `begin` to the last but one.

    `logits` is (tokens, 2): start and end. The first token means "no answer here". Only it and the
    candidate's tokens share the probability. None if the candidate has no tokens.
    """
    allowed = np.concatenate([logits[:1], logits[begin:-1]]).astype(np.float64)
    count = len(allowed) - 1
    if count < 1:
        return None
    log_probabilities = allowed - np.logaddexp.reduce(allowed, axis=0)
    starts, ends = log_probabilities[1:, 0], log_probabilities[1:, 1]
    scores = starts[:, None] + ends[None, :]  # (first, last)
    place = np.arange(count)
    length = place[None, :] - place[:, None]
    scores[(length < 0) | (length >= _MAX_SPAN_TOKENS)] = -np.inf
    first, last = divmod(int(scores.argmax()), count)
    no_answer = float(log_probabilities[0].sum())
    return TokenSpan(begin + first, begin + last, float(scores[first, last]), no_answer)
