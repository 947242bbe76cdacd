"""The networks, one a file, each read in one sitting."""

from __future__ import annotations

from torch import nn

from ...models.light_config import (
    CompareAggregateLayout,
    CosinetLayout,
    Layout,
    RelationalCNNLayout,
)
from .compare_aggregate import CompareAggregate
from .cosinet import Cosinet
from .relational_cnn import RelationalCNN

__all__ = ["CompareAggregate", "Cosinet", "RelationalCNN", "build", "parameter_count"]


def build(layout: Layout, *, dropout: float = 0.0) -> nn.Module:
    """The network of a layout, with fresh weights."""
    if isinstance(layout, CosinetLayout):
        return Cosinet(layout, dropout=dropout)
    if isinstance(layout, CompareAggregateLayout):
        return CompareAggregate(layout, dropout=dropout)
    if isinstance(layout, RelationalCNNLayout):
        return RelationalCNN(layout, dropout=dropout)
    raise TypeError(f"No network for {type(layout).__name__}.")


def parameter_count(network: nn.Module) -> int:
    """Trained numbers; word vectors are frozen and belong to no network."""
    return sum(parameter.numel() for parameter in network.parameters())
