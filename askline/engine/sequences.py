"""Questions and candidates as token sequences; what is too long becomes several of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from .tokenizer import WordPiece

__all__ = [
    "IntArray",
    "TokenSequences",
]

IntArray = NDArray[np.int64]

_LONGEST = 256  # tokens of a sequence, as in training
_MARKS = 3  # [CLS] question [SEP] candidate [SEP]


@dataclass(frozen=True, slots=True, eq=False)
class TokenSequences:
    """The sequences of all candidates, in their order. A candidate has at least one."""

    prefixes: tuple[IntArray, ...]
    """What each begins with: the first mark, the question, a separator."""
    suffixes: tuple[IntArray, ...]
    """What is each one's own: its part of the candidate, and a separator."""
    candidate: IntArray
    """The candidate of each window."""
    start: IntArray
    """The token of the candidate that each window begins with."""
    lengths: IntArray

    @classmethod
    def for_question(
        cls, tokenizer: WordPiece, question: str, candidates: Sequence[str], *, positions: int
    ) -> TokenSequences:
        """Of one question."""
        return cls.for_requests(tokenizer, [(question, candidates)], positions=positions)

    @classmethod
    def for_requests(
        cls,
        tokenizer: WordPiece,
        requests: Iterable[tuple[str, Sequence[str]]],
        *,
        positions: int,
        longest: int = _LONGEST,
    ) -> TokenSequences:
        """
        Tokenise all, each text once; candidates are numbered through all questions.

        A candidate is never cut short. A question is, at half a sequence's length: 126 tokens.
        """
        overlap, longest = longest // 4, min(longest, positions)
        heads, parts = list[IntArray](), list[IntArray]()
        owner, start = list[int](), list[int]()
        rows = count()
        for question, candidates in requests:
            asked = tokenizer.token_ids(question)[: (longest - _MARKS) // 2]
            head = np.array([tokenizer.cls_id, *asked, tokenizer.sep_id], np.int64)
            room = longest - _MARKS - len(asked)
            for candidate, row in zip(candidates, rows, strict=False):
                numbers = tokenizer.token_ids(candidate)
                for first in _starts(len(numbers), room, overlap):
                    own = [*numbers[first : first + room], tokenizer.sep_id]
                    parts.append(np.array(own, np.int64))
                    heads.append(head)
                    owner.append(row)
                    start.append(first)
        lengths = np.array(
            [len(head) + len(part) for head, part in zip(heads, parts, strict=True)], np.int64
        )
        whose, begin = np.array(owner, np.int64), np.array(start, np.int64)
        return cls(tuple(heads), tuple(parts), whose, begin, lengths)

    def __len__(self) -> int:
        """The number of windows."""
        return len(self.suffixes)

    def tokens(self, candidates: int) -> IntArray:
        """(candidates,) what each costs a layer."""
        return np.bincount(self.candidate, self.lengths, candidates).astype(np.int64)

    def batch(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """(windows, tokens) numbers and kinds of windows that are all of one length."""
        numbers = np.empty((len(which), int(self.lengths[which[0]])), np.int64)
        kinds = np.zeros_like(numbers)
        for row, one in enumerate(which.tolist()):
            begin = len(self.prefixes[one])
            numbers[row, :begin], numbers[row, begin:] = self.prefixes[one], self.suffixes[one]
            kinds[row, begin:] = 1
        return numbers, kinds


def _starts(tokens: int, room: int, overlap: int) -> Iterator[int]:
    """
    Where the windows begin; the last one ends with the last token and is as long as the rest.

    Two windows of a candidate share tokens, so that no sentence is torn in both.
    """
    step = room - min(overlap, room // 3)
    last = max(0, tokens - room)
    yield from range(0, last, step)
    yield last
