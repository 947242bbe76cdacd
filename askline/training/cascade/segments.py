"""Softmax and means within runs of unequal length, without a loop over the runs."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["log_shares"]


def log_shares(values: Tensor, owners: Tensor, count: int) -> Tensor:
    """The log-softmax of each owner's values: (…, n) and (n,) → (…, n)."""
    index = owners.expand(values.shape)
    shape = (*values.shape[:-1], count)
    peak = values.new_full(shape, -torch.inf).scatter_reduce(
        -1, index, values.detach(), "amax", include_self=True
    )
    level = values - peak.gather(-1, index)
    total = values.new_zeros(shape).scatter_add(-1, index, level.exp())
    return level - total.log().gather(-1, index)
