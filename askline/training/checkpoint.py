"""
What a broken-off training goes on from: the state after the last whole epoch.

Weights between weights.

The mean of several trainings from one start ranks like their ensemble at the cost of one model, and
a point between the start and what was trained keeps what the start knew about other texts
(Wortsman et al., 2022). On lists padded to 400 candidates nothing else helped as much:
research/notes/transformers.md.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..text.atomic_write import atomic_write

__all__ = [
    "Checkpoint",
    "Epoch",
    "average",
    "blend",
]


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the questions came to."""

    number: int
    """From 1."""
    loss: float
    """The mean over the steps."""
    seconds: float
    """Of training alone, without the measuring."""
    dev: Mapping[str, float]
    """Measure → percent; empty without a dev set."""


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """
    Weights, optimiser and history.

    No state of a random generator: every epoch seeds its own from the recipe's seed and its
    number, so the epochs that follow are the same whether or not training was broken off.
    """

    settings: str
    """Layout, recipe and data as text: a checkpoint of other settings is refused."""
    network: Mapping[str, Tensor]
    optimiser: Mapping[str, Any]
    history: tuple[Epoch, ...]
    best: Mapping[str, Tensor] | None
    """The weights of the best epoch, where the recipe keeps those."""

    def save(self, path: Path) -> None:
        """Write the file whole or leave the old one."""
        state = {
            "settings": self.settings,
            "network": dict(self.network),
            "optimiser": dict(self.optimiser),
            "history": [asdict(epoch) for epoch in self.history],
            "best": None if self.best is None else dict(self.best),
        }
        with atomic_write(path) as stream:
            torch.save(state, stream)

    @classmethod
    def load(cls, path: Path, *, settings: str) -> Checkpoint:
        """Read a checkpoint of the same settings. Holds tensors and plain values, no code."""
        remedy = "Remove the file, or name another folder to write to."
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
            history = tuple(Epoch(**epoch) for epoch in state["history"])
            found = cls(**(state | {"history": history}))
        except (OSError, EOFError, RuntimeError, KeyError, TypeError, pickle.PickleError) as error:
            raise InputError(f"{path} is no checkpoint that can be read. {remedy}") from error
        if found.settings != settings:
            raise InputError(
                f"{path} belongs to a training with other settings. {remedy}\n"
                f"  there: {found.settings}\n  here:  {settings}"
            )
        return found


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
