"""
Weights between weights.

The mean of several trainings from one start ranks like their ensemble at the cost of one model, and
a point between the start and what was trained keeps what the start knew about other texts
(Wortsman et al., 2022). On lists padded to 400 candidates nothing else helped as much:
research/notes/transformers.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ...errors import InputError

__all__ = ["average", "blend"]

State = Mapping[str, Tensor]


def average(states: Sequence[State], shares: Sequence[float] | None = None) -> dict[str, Tensor]:
    """The weighted mean of states of one network, equal shares if none are given."""
    if not states:
        raise InputError("Expected at least one state to average, got none.")
    shares = [1 / len(states)] * len(states) if shares is None else shares
    if len(shares) != len(states):
        raise InputError(f"Expected a share for each of {len(states)} states, got {len(shares)}.")
    if any(state.keys() != states[0].keys() for state in states):
        raise InputError("Only states of the same network can be averaged.")
    return {name: _mean([state[name] for state in states], shares) for name in states[0]}


def blend(start: State, trained: State, share: float) -> dict[str, Tensor]:
    """The point that lies `share` of the way from `start` to `trained`."""
    if not 0 <= share <= 1:
        raise InputError(f"share must be from 0 to 1, got {share}.")
    return average([start, trained], [1 - share, share])


def _mean(values: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    if not values[0].is_floating_point():
        return values[0]  # position numbers and the like, which are never trained
    return torch.stack([share * value for share, value in zip(shares, values, strict=True)]).sum(0)
