"""What stands at a depth of the encoder: a classifier, and at the last depth a reader."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor, nn

from ...models.cascade_config import Head
from ..packed.packing import Packed

__all__ = ["HEADS", "FirstTokenClassifier", "Head", "MeanClassifier"]

HEADS: tuple[str, ...] = get_args(Head)


class FirstTokenClassifier(nn.Module):
    """BERT's own: the first token, a layer of the encoder's width with tanh, one output."""

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)

    @property
    def hidden(self) -> list[nn.Linear]:
        """Its layers but the last."""
        return [self.dense]

    def forward(self, states: Tensor, batch: Packed) -> Tensor:
        """`states` (tokens, width) → (sequences,)"""
        return self.judge(states[batch.starts[:-1].long()].float())

    def judge(self, first: Tensor) -> Tensor:
        """`first` (sequences, width), in float32 → (sequences,)"""
        scores: Tensor = self.out(self.dropout(torch.tanh(self.dense(first))))
        return scores[:, 0]


class MeanClassifier(nn.Module):
    """The Cascade Transformer's: the mean over all tokens, three layers with tanh, one output."""

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)

    @property
    def hidden(self) -> list[nn.Linear]:
        """Its layers but the last."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, states: Tensor, batch: Packed) -> Tensor:
        """`states` (tokens, width) → (sequences,)"""
        counts = (batch.starts[1:] - batch.starts[:-1]).unsqueeze(1)
        total = states.new_zeros(len(batch), states.shape[1], dtype=torch.float32)
        return self.judge(total.index_add(0, batch.owners, states.float()) / counts)

    def judge(self, mean: Tensor) -> Tensor:
        """`mean` (sequences, width), in float32 → (sequences,)"""
        for layer in self.layers:
            mean = self.dropout(torch.tanh(layer(mean)))
        scores: Tensor = self.out(mean)
        return scores[:, 0]
