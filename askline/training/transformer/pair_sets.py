"""
Question sets as token ids of (question, candidate) pairs, and batches with little padding.

Texts are tokenized once (`TextTable`) and joined to any number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import InputError
from ...types import QuestionSet
from ..packing import PackedBatch, PairTemplate, TokenTable

__all__ = [
    "PairSet",
    "TextTable",
    "encode_pairs",
    "token_batches",
]


@dataclass(frozen=True, slots=True, eq=False)
class PairSet:
    """The token ids of every (question, candidate) pair of a set, question after question."""

    name: str
    tokens: tuple[NDArray[np.int32], ...]
    segments: tuple[NDArray[np.int8], ...] | None
    """Token type ids; None for encoders without them."""
    labels: NDArray[np.float32]
    offsets: NDArray[np.int64]
    """The pairs of question i are those from offsets[i] up to offsets[i + 1]."""
    padding: int

    def __len__(self) -> int:
        """The number of questions."""
        return len(self.offsets) - 1

    def rows(self, questions: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """The pairs of some questions, question after question."""
        return np.concatenate(
            [np.arange(self.offsets[at], self.offsets[at + 1]) for at in questions]
        )

    def take(self, questions: Sequence[int] | NDArray[np.int64]) -> PairSet:
        """Some of the questions as a set of their own."""
        rows = self.rows(questions)
        sizes = np.diff(self.offsets)[np.asarray(questions, np.int64)]
        return replace(
            self,
            tokens=tuple(self.tokens[row] for row in rows),
            segments=self.segments and tuple(self.segments[row] for row in rows),
            labels=self.labels[rows],
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        )

    def draw(self, chosen: NDArray[np.int64], *_: object) -> PairSet:
        """The complete lists of these questions: a `ListSource` without random choices."""
        return self.take(chosen)

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of tokens of each of these pairs."""
        return np.array([len(self.tokens[row]) for row in rows])

    def collate(self, rows: NDArray[np.int64], device: torch.device | str) -> dict[str, Tensor]:
        """Some pairs as the inputs of an encoder, padded to the longest."""
        return self.pack(rows, device).padded()

    def pack(self, rows: NDArray[np.int64], device: torch.device | str) -> PackedBatch:
        """Some pairs as a packed batch."""
        tokens = [self.tokens[row] for row in rows]
        lengths = np.array([len(row) for row in tokens])
        ends = np.cumsum(lengths)
        flat = np.concatenate(tokens)
        segments = (
            np.zeros(len(flat), np.int8)
            if self.segments is None
            else np.concatenate([self.segments[row] for row in rows])
        )
        owners = np.repeat(np.arange(len(rows)), lengths)
        starts = np.concatenate([[0], ends])

        def on(array: NDArray[Any], kind: type = np.int64) -> Tensor:
            return torch.from_numpy(array.astype(kind)).to(device, non_blocking=True)

        return PackedBatch(
            tokens=on(flat),
            segments=on(segments),
            positions=on(np.arange(ends[-1]) - starts[owners]),
            owners=on(owners),
            starts=on(starts, np.int32),
            second=on(np.bincount(owners, segments == 0, len(rows))),
            in_second=on(segments == 1, np.bool_),
            longest=int(lengths.max()),
            padding=self.padding,
            has_segments=self.segments is not None,
        )


def token_batches(lengths: NDArray[np.int64], max_tokens: float) -> Iterator[NDArray[np.int64]]:
    """
    Batches of rows of similar length with at most `max_tokens` padded tokens, the shortest first.

    Every row is in exactly one batch. A row that is longer than `max_tokens` is a batch alone.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        full = end == len(order) or (end + 1 - start) * lengths[order[end]] > max_tokens
        if full:
            yield order[start:end]
            start = end


Tokens = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class TextTable:
    """Tokenized texts by number, and the template that joins two of them."""

    texts: TokenTable
    template: PairTemplate
    max_length: int = 256

    @classmethod
    def encode(cls, texts: Sequence[str], tokenizer: Any, *, max_length: int = 256) -> TextTable:
        """Text i of `texts` gets number i."""
        return cls(TokenTable.of(texts, tokenizer), PairTemplate.of(tokenizer), max_length)

    def __len__(self) -> int:
        return len(self.texts.offsets) - 1

    def __getitem__(self, text: int) -> Tokens:
        """The tokens of a text, without special tokens."""
        return self.texts.tokens[self.texts.offsets[text] : self.texts.offsets[text + 1]]

    def pairs(
        self,
        lists: Iterable[tuple[int, Sequence[int]]],
        labels: Sequence[float] = (),
        *,
        name: str = "",
    ) -> PairSet:
        """
        Pairs of each question with its candidates, all given by text number.

        `labels` has one label per candidate of all lists; by default all are 0.
        """
        joined: list[tuple[Tokens, NDArray[np.int8]]] = []
        sizes = []
        for question, candidates in lists:
            asked = self[question]
            sizes.append(len(candidates))
            joined.extend(self._join(asked, self[candidate]) for candidate in candidates)
        return PairSet(
            name=name,
            tokens=tuple(tokens for tokens, _ in joined),
            segments=tuple(kinds for _, kinds in joined) if self.template.has_segments else None,
            labels=np.array(labels if len(labels) else [0.0] * len(joined), np.float32),
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            padding=self.template.padding,
        )

    def _join(self, question: Tokens, candidate: Tokens) -> tuple[Tokens, NDArray[np.int8]]:
        """If a pair is too long, the longer text is truncated (`longest_first`)."""
        frame = self.template
        room = self.max_length - frame.extra
        question_size = min(len(question), max(room - len(candidate), room // 2))
        candidate_size = min(len(candidate), room - question_size)
        parts = (
            frame.before,
            question[:question_size],
            frame.between,
            candidate[:candidate_size],
            frame.after,
        )
        return np.concatenate(parts), np.repeat(
            np.array(frame.segments, np.int8), [len(part) for part in parts]
        )


def encode_pairs(questions: QuestionSet, tokenizer: Any, max_length: int = 256) -> PairSet:
    """The pairs of a set; in a pair that is too long, the longer text is truncated."""
    if not questions.candidate_count:
        raise InputError(f"Question set {questions.name!r} has no candidates to encode.")
    number: dict[str, int] = {}
    lists = [
        [number.setdefault(text, len(number)) for text in (question.text, *question.texts)]
        for question in questions
    ]
    labels = [candidate.is_answer for question in questions for candidate in question.candidates]
    table = TextTable.encode(list(number), tokenizer, max_length=max_length)
    return table.pairs(((asked, own) for asked, *own in lists), labels, name=questions.name)
