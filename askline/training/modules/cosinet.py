"""Cosinet (Bonadiman & Moschitti, 2020): relatedness, one convolution a side, the list read."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...models.light_config import CosinetLayout
from ..batches import Batch
from .dropout import Dropout
from .list_layer import ListLayer
from .pooled_convolution import PooledConvolution

__all__ = ["Cosinet"]


class Cosinet(nn.Module):
    """Each word with its relatedness to the other text; pairs as product and difference."""

    def __init__(self, layout: CosinetLayout, *, dropout: float = 0.0) -> None:
        super().__init__()
        shape = layout.dimensions, len(layout.channels), layout.filters, layout.width
        self.question = PooledConvolution(*shape)
        self.candidate = PooledConvolution(*shape)
        self.list = ListLayer(layout.list_layer, layout.pair, layout.list_hidden)
        self.score = nn.Linear(self.list.outputs, 1)
        self.dropout = Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        """One score a pair."""
        asked = self.question(batch.questions, batch.asked, batch.owner)  # (pairs, filters)
        said = self.candidate(batch.candidates, batch.said)  # (pairs, filters)
        pairs = torch.cat([asked * said, asked - said], dim=1)  # (pairs, 2 * filters)
        read = self.list(self.dropout(pairs, batch.random), batch.sizes)  # (pairs, hidden)
        scores: Tensor = self.score(read).squeeze(1)
        return scores
