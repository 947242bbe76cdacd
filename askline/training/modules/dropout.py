"""Dropout that draws from a generator of its own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Dropout"]


class Dropout(nn.Module):
    """As `torch.nn.Dropout`, which draws from one generator for all threads: in no fixed order."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, values: Tensor, random: torch.Generator | None) -> Tensor:
        """`random` may be None for torch's own generator."""
        if not self.training or not self.share:
            return values
        kept = torch.empty_like(values).bernoulli_(1 - self.share, generator=random)
        return values * kept.div_(1 - self.share)
