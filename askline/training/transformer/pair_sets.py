"""
Question sets as token numbers, and batches of them with little padding.

Pairs joined from texts that were tokenized once, whatever lists they are drawn for.
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
    "encode_texts",
    "token_batches",
]


@dataclass(frozen=True, slots=True, eq=False)
class PairSet:
    """Every (question, candidate) pair of a set, questions in order, as token numbers."""

    name: str
    tokens: tuple[NDArray[np.int32], ...]
    segments: tuple[NDArray[np.int8], ...] | None
    """Which of the two texts a token belongs to; None for encoders that do not ask."""
    labels: NDArray[np.float32]
    offsets: NDArray[np.int64]
    """The pairs of question i are those from offsets[i] up to offsets[i + 1]."""
    padding: int
    teacher_scores: NDArray[np.float32] | None = None
    """What a teacher says of each pair, where there is one."""

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
            teacher_scores=None if self.teacher_scores is None else self.teacher_scores[rows],
        )

    def draw(self, chosen: NDArray[np.int64], *_: object) -> PairSet:
        """The lists of these questions as they are: a `ListSource` in which nothing is random."""
        return self.take(chosen)

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens in each of these pairs."""
        return np.array([len(self.tokens[row]) for row in rows])

    def collate(self, rows: NDArray[np.int64], device: torch.device | str) -> dict[str, Tensor]:
        """These pairs as an encoder takes them, padded to the longest."""
        return self.pack(rows, device).padded()

    def pack(self, rows: NDArray[np.int64], device: torch.device | str) -> PackedBatch:
        """These pairs end to end."""
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
            places=on(np.arange(ends[-1]) - starts[owners]),
            owners=on(owners),
            starts=on(starts, np.int32),
            second=on(np.bincount(owners, segments == 0, len(rows))),
            in_second=on(segments == 1, np.bool_),
            longest=int(lengths.max()),
            padding=self.padding,
            has_segments=self.segments is not None,
        )


def encode_texts(
    texts: Sequence[tuple[str, str]],
    tokenizer: Any,
    *,
    sizes: Sequence[int],
    labels: Sequence[bool] = (),
    name: str = "",
    max_length: int = 256,
) -> PairSet:
    """Pairs of texts, `sizes` of them for each question."""
    if not texts:
        raise InputError(f"Question set {name!r} has no candidates to encode.")
    found = tokenizer(
        [question for question, _ in texts],
        [candidate for _, candidate in texts],
        truncation="longest_first",
        max_length=max_length,
    )
    segments = found.get("token_type_ids")
    return PairSet(
        name=name,
        tokens=tuple(np.array(row, np.int32) for row in found["input_ids"]),
        segments=None if segments is None else tuple(np.array(row, np.int8) for row in segments),
        labels=np.array(labels or [False] * len(texts), np.float32),
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        padding=tokenizer.pad_token_id or 0,
    )


def token_batches(lengths: NDArray[np.int64], max_tokens: float) -> Iterator[NDArray[np.int64]]:
    """
    Places of like length together, as many as fit the max_tokens when padded; the shortest first.

    Every place comes exactly once. One that is longer than the max_tokens comes alone.
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
    """Texts by number, and how two of them make a pair."""

    texts: TokenTable
    template: PairTemplate
    max_length: int = 256

    @classmethod
    def encode(cls, texts: Sequence[str], tokenizer: Any, *, max_length: int = 256) -> TextTable:
        """The caller keeps which number is which text."""
        return cls(TokenTable.of(texts, tokenizer), PairTemplate.of(tokenizer), max_length)

    def __len__(self) -> int:
        return len(self.texts.offsets) - 1

    def __getitem__(self, text: int) -> Tokens:
        """Without special tokens."""
        return self.texts.tokens[self.texts.offsets[text] : self.texts.offsets[text + 1]]

    def pairs(
        self,
        lists: Iterable[tuple[int, Sequence[int]]],
        labels: Sequence[float] = (),
        *,
        name: str = "",
    ) -> PairSet:
        """
        Each question, by its number, with its candidates, by theirs.

        `labels` has one for each candidate of all lists; without them all are 0.
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
        """Of a pair that is too long, the longer text is cut, as tokenizers do it."""
        frame = self.template
        room = self.max_length - frame.extra
        asked = min(len(question), max(room - len(candidate), room // 2))
        said = min(len(candidate), room - asked)
        parts = (frame.before, question[:asked], frame.between, candidate[:said], frame.after)
        return np.concatenate(parts), np.repeat(
            np.array(frame.segments, np.int8), [len(part) for part in parts]
        )


def encode_pairs(questions: QuestionSet, tokenizer: Any, max_length: int = 256) -> PairSet:
    """The pairs of a set; of a pair that is too long, the longer text is cut."""
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
