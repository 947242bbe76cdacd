"""What a step of training sees: texts of several lengths, padded only as they are handed out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..engine.numpy_ops import FloatArray, IntArray

__all__ = ["Batch", "Ragged", "Texts"]


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Rows of several lengths, kept end to end without padding."""

    values: Tensor  # (total, …)
    starts: Tensor  # (rows,)
    lengths: Tensor  # (rows,)

    @classmethod
    def of(
        cls, values: FloatArray | IntArray, lengths: Sequence[int] | IntArray, device: str
    ) -> Ragged:
        """Rows of these lengths, one after the other."""
        ends = np.cumsum(lengths)
        return cls(
            torch.as_tensor(values, device=device),
            torch.as_tensor(ends - lengths, device=device),
            torch.as_tensor(np.asarray(lengths), device=device),
        )

    def to(self, device: str) -> Ragged:
        """The same on another device."""
        parts = (self.values, self.starts, self.lengths)
        return Ragged(*(part.to(device) for part in parts))

    def padded(self, rows: Tensor) -> Tensor:
        """Some rows as (rows, longest, …), with zeros after the end of each."""
        lengths = self.lengths[rows]
        place = torch.arange(int(lengths.max()), device=rows.device)
        inside = place < lengths[:, None]  # (rows, longest)
        at = torch.where(inside, self.starts[rows, None] + place, 0)
        values = self.values[at]
        return values * inside.view(*inside.shape, *[1] * (values.ndim - 2))


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Texts over a table of their distinct words. Row 0 of the table is zero and pads."""

    vectors: Tensor  # (distinct, dimensions)
    words: Tensor  # (texts, longest) rows of `vectors`
    lengths: Tensor  # (texts,)

    @classmethod
    def of(cls, ragged: Ragged, rows: Tensor, vectors: Tensor) -> Texts:
        """Some texts, their words numbered anew so that each distinct one stands once."""
        words = ragged.padded(rows)
        with_zero = torch.cat([words.new_zeros(1), words.flatten()])  # so that 0 stays 0
        distinct, number = torch.unique(with_zero, return_inverse=True)
        return cls(vectors[distinct], number[1:].view_as(words), ragged.lengths[rows])

    @property
    def inside(self) -> Tensor:
        """(texts, longest): True where a text has a word, False after its end."""
        place = torch.arange(self.words.shape[1], device=self.words.device)
        return place < self.lengths[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some questions with all their candidates; a pair is a candidate with its question."""

    questions: Texts
    candidates: Texts  # one text a pair
    asked: Tensor  # (pairs, longest question, channels)
    said: Tensor  # (pairs, longest candidate, channels)
    owner: Tensor  # (pairs,) which of the questions
    sizes: tuple[int, ...]  # candidates of each question
    labels: Tensor  # (pairs,)
    random: torch.Generator | None = None  # what dropout draws from; torch's own if None
