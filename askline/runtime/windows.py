"""A question and its candidates as token sequences; what is too long becomes several of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .wordpiece import WordPiece

__all__ = ["IntArray", "Windows"]

IntArray = NDArray[np.int64]

_LONGEST = 256  # tokens of a sequence, as in training
_OVERLAP = 64  # tokens that two windows of a candidate share, so that no sentence is torn in both
_MARKS = 3  # [CLS] question [SEP] candidate [SEP]


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The sequences of all candidates, in their order. A candidate has at least one."""

    head: IntArray
    """What all begin with: the first mark, the question, a separator."""
    parts: tuple[IntArray, ...]
    """What is each one's own: its part of the candidate, and a separator."""
    owner: IntArray
    """The candidate of each window."""
    start: IntArray
    """The token of the candidate that each window begins with."""
    lengths: IntArray

    @classmethod
    def of(
        cls, tokeniser: WordPiece, question: str, candidates: Sequence[str], *, positions: int
    ) -> Windows:
        """
        Tokenise all, each text once.

        A candidate is never cut short. A question is, at half a sequence's length: 126 tokens.
        """
        longest = min(_LONGEST, positions)
        asked = tokeniser.numbers(question)[: (longest - _MARKS) // 2]
        room = longest - _MARKS - len(asked)
        parts, owner, start = list[IntArray](), list[int](), list[int]()
        for row, candidate in enumerate(candidates):
            numbers = tokeniser.numbers(candidate)
            for first in _starts(len(numbers), room):
                own = [*numbers[first : first + room], tokeniser.separator]
                parts.append(np.array(own, np.int64))
                owner.append(row)
                start.append(first)
        head = np.array([tokeniser.first, *asked, tokeniser.separator], np.int64)
        lengths = np.array([len(head) + len(part) for part in parts], np.int64)
        whose, begin = np.array(owner, np.int64), np.array(start, np.int64)
        return cls(head, tuple(parts), whose, begin, lengths)

    def __len__(self) -> int:
        """The number of windows."""
        return len(self.parts)

    def tokens(self, candidates: int) -> IntArray:
        """(candidates,) what each costs a layer."""
        return np.bincount(self.owner, self.lengths, candidates).astype(np.int64)

    def batch(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """(windows, tokens) numbers and kinds of windows that are all of one length."""
        own = np.stack([self.parts[one] for one in which.tolist()])
        numbers = np.concatenate([np.tile(self.head, (len(which), 1)), own], axis=1)
        kinds = np.zeros_like(numbers)
        kinds[:, len(self.head) :] = 1
        return numbers, kinds


def _starts(count: int, room: int) -> Iterator[int]:
    """Where the windows begin; the last one ends with the last token and is as long as the rest."""
    step = room - min(_OVERLAP, room // 3)
    last = max(0, count - room)
    yield from range(0, last, step)
    yield last
