"""
The first-stage filter in torch, for training; `askline.engine.first_stage` runs it without.

The second look, which needs the whole list, has nothing to learn and is only there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...models.light_config import COVERAGE_SCALE, FEATURES, FILTER_CHANNELS, FilterLayout
from ..batches import Texts
from ..modules.pooled_convolution import PooledConvolution
from .lists import Example

__all__ = ["Filter", "FilterBatch"]


@dataclass(frozen=True, slots=True, eq=False)
class FilterBatch:
    """Examples, padded: questions to one length, lists to one size, candidates to one length."""

    features: Tensor  # (lists, candidates, features)
    present: Tensor  # (lists, candidates) bool
    answer: Tensor  # (lists, candidates) bool
    log_weight: Tensor  # (lists, candidates)
    asked: Tensor  # (lists, question words)
    in_question: Tensor  # (lists, question words) float
    scarcity: Tensor  # (lists, question words)
    best: Tensor  # (lists, candidates, question words)
    exact: Tensor  # (lists, candidates, question words)
    said: Tensor  # (lists, candidates, words)
    in_candidate: Tensor  # (lists, candidates, words) float
    related: Tensor  # (lists, candidates, words)

    @classmethod
    def of(cls, examples: Sequence[Example]) -> FilterBatch:
        """Pad with zeros."""
        lists = len(examples)
        most = max(len(one.features) for one in examples)
        asked = max(len(one.asked) for one in examples)
        said = max(len(words) for one in examples for words in one.said)
        wide = {
            "features": np.zeros((lists, most, len(FEATURES)), np.float32),
            "present": np.zeros((lists, most), np.bool_),
            "answer": np.zeros((lists, most), np.bool_),
            "log_weight": np.zeros((lists, most), np.float32),
            "asked": np.zeros((lists, asked), np.int64),
            "in_question": np.zeros((lists, asked), np.float32),
            "scarcity": np.zeros((lists, asked), np.float32),
            "best": np.zeros((lists, most, asked), np.float32),
            "exact": np.zeros((lists, most, asked), np.float32),
            "said": np.zeros((lists, most, said), np.int64),
            "in_candidate": np.zeros((lists, most, said), np.float32),
            "related": np.zeros((lists, most, said), np.float32),
        }
        for row, one in enumerate(examples):
            _fill(wide, row, one)
        return cls(**{name: torch.from_numpy(value) for name, value in wide.items()})


def _fill(wide: dict[str, np.ndarray], row: int, one: Example) -> None:
    size, asked = one.best.shape
    for name in ("features", "log_weight"):
        wide[name][row, :size] = getattr(one, name)
    wide["present"][row, :size] = True
    wide["answer"][row, : one.answers] = True
    for name in ("asked", "scarcity"):
        wide[name][row, :asked] = getattr(one, name)
    wide["in_question"][row, :asked] = 1
    for name in ("best", "exact"):
        wide[name][row, :size, :asked] = getattr(one, name)
    for place, (words, related) in enumerate(zip(one.said, one.related, strict=True)):
        wide["said"][row, place, : len(words)] = words
        wide["in_candidate"][row, place, : len(words)] = 1
        wide["related"][row, place, : len(words)] = related


class Filter(nn.Module):
    """Direct features, learned weights for question words, and Cosinet's two convolutions."""

    mean: Tensor
    scale: Tensor

    def __init__(self, layout: FilterLayout, *, dropout: float = 0.0) -> None:
        super().__init__()
        own, around = layout.dimensions, layout.width // 2
        self.register_buffer("mean", torch.zeros(len(FEATURES)))
        self.register_buffer("scale", torch.ones(len(FEATURES)))
        self.terms = nn.Conv1d(own + 2, layout.terms, 3, padding=1)
        self.weights = nn.Linear(layout.terms, 3)
        shape = layout.filters, layout.width
        self.candidate = PooledConvolution(own, FILTER_CHANNELS, *shape)
        self.question = nn.Conv1d(own + 1, *shape, padding=around)
        self.hidden = nn.Linear(layout.inputs, layout.hidden)
        self.score = nn.Linear(layout.hidden, 1)
        self.direct = nn.Linear(len(FEATURES), 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: FilterBatch, vectors: Tensor, rarity: Tensor) -> Tensor:
        """(lists, candidates)."""
        direct = (batch.features - self.mean) / self.scale
        asked = vectors[batch.asked]  # (lists, question words, dimensions)
        rare = rarity[batch.asked]
        question = self._question(asked, rare, batch.in_question)[:, None]
        candidate = self._candidates(batch, vectors, rarity)
        pairs = torch.cat([question * candidate, question - candidate], 2)
        seen = [direct, self._coverages(batch, asked, rare), self.dropout(pairs)]
        hidden = self.hidden(torch.cat(seen, 2)).relu()
        scores: Tensor = self.score(hidden)[..., 0] + self.direct(direct)[..., 0]
        return scores

    def _coverages(self, batch: FilterBatch, asked: Tensor, rare: Tensor) -> Tensor:
        inputs = torch.cat([asked, rare[..., None], batch.scarcity[..., None]], 2)
        inside = batch.in_question[..., None]
        hidden = self.terms((inputs * inside).transpose(1, 2)).tanh().transpose(1, 2)
        weights = F.softplus(self.weights(hidden)) * inside  # (lists, question words, coverages)
        weights = weights / (weights.sum(1, keepdim=True) + 1e-3)
        squared = batch.best**2
        met = [
            (part @ weights[..., column : column + 1])[..., 0]
            for column, part in enumerate((squared, squared**2, batch.exact))
        ]
        return torch.stack(met, 2) * COVERAGE_SCALE

    def _question(self, asked: Tensor, rare: Tensor, inside: Tensor) -> Tensor:
        inputs = torch.cat([self.dropout(asked), rare[..., None]], 2) * inside[..., None]
        values = self.question(inputs.transpose(1, 2))  # (lists, filters, question words)
        pooled: Tensor = values.masked_fill(inside[:, None] == 0, -torch.inf).amax(2)
        return pooled

    def _candidates(self, batch: FilterBatch, vectors: Tensor, rarity: Tensor) -> Tensor:
        words, inside = batch.said[batch.present], batch.in_candidate[batch.present]
        related = batch.related[batch.present]  # (pairs, words)
        exact = (related > 0.995).float()  # no other word than the very one comes so near
        rare = rarity[words] * inside
        beside = torch.stack([related, exact, rare, exact * rare], 2)
        distinct, number = torch.unique(F.pad(words.flatten(), (1, 0)), return_inverse=True)
        texts = Texts(vectors[distinct], number[1:].view_as(words), inside.sum(1).long())
        found = self.candidate(texts, beside)  # (pairs, filters)
        pooled = vectors.new_zeros(*batch.present.shape, found.shape[1])
        pooled[batch.present] = found
        return pooled
