"""Question sets as token numbers, and batches of them with little padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import InputError
from ...types import QuestionSet

__all__ = ["PairSet", "encode_pairs", "encode_texts", "token_batches"]


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

    def __len__(self) -> int:
        """The number of questions."""
        return len(self.offsets) - 1

    def rows(self, questions: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """The pairs of some questions, question after question."""
        return np.concatenate(
            [np.arange(self.offsets[at], self.offsets[at + 1]) for at in questions]
        )

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens in each of these pairs."""
        return np.array([len(self.tokens[row]) for row in rows])

    def collate(self, rows: NDArray[np.int64], device: torch.device | str) -> dict[str, Tensor]:
        """These pairs as an encoder takes them, padded to the longest."""
        longest = int(self.lengths(rows).max())
        tokens = np.full((len(rows), longest), self.padding, np.int64)
        inside = np.zeros((len(rows), longest), np.int64)
        segments = np.zeros((len(rows), longest), np.int64)
        for place, row in enumerate(rows):
            count = len(self.tokens[row])
            tokens[place, :count] = self.tokens[row]
            inside[place, :count] = 1
            if self.segments is not None:
                segments[place, :count] = self.segments[row]
        arrays = {"input_ids": tokens, "attention_mask": inside}
        if self.segments is not None:
            arrays["token_type_ids"] = segments
        return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def encode_pairs(questions: QuestionSet, tokeniser: Any, *, max_tokens: int = 256) -> PairSet:
    """The pairs of a set; of a pair that is too long, the longer text is cut."""
    texts = [(question.text, text) for question in questions for text in question.texts]
    labels = [candidate.is_answer for question in questions for candidate in question.candidates]
    sizes = [len(question.candidates) for question in questions]
    return encode_texts(
        texts, tokeniser, sizes=sizes, labels=labels, name=questions.name, max_tokens=max_tokens
    )


def encode_texts(
    texts: Sequence[tuple[str, str]],
    tokeniser: Any,
    *,
    sizes: Sequence[int],
    labels: Sequence[bool] = (),
    name: str = "",
    max_tokens: int = 256,
) -> PairSet:
    """Pairs of texts, `sizes` of them for each question."""
    if not texts:
        raise InputError(f"Question set {name!r} has no candidates to encode.")
    found = tokeniser(
        [question for question, _ in texts],
        [candidate for _, candidate in texts],
        truncation="longest_first",
        max_length=max_tokens,
    )
    segments = found.get("token_type_ids")
    return PairSet(
        name=name,
        tokens=tuple(np.array(row, np.int32) for row in found["input_ids"]),
        segments=None if segments is None else tuple(np.array(row, np.int8) for row in segments),
        labels=np.array(labels or [False] * len(texts), np.float32),
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        padding=tokeniser.pad_token_id or 0,
    )


def token_batches(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """
    Places of like length together, as many as fit the budget when padded; the shortest first.

    Every place comes exactly once. One that is longer than the budget comes alone.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        full = end == len(order) or (end + 1 - start) * lengths[order[end]] > budget
        if full:
            yield order[start:end]
            start = end
