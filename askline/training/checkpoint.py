"""The state of an interrupted training after its last complete epoch, and averages of weights."""

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

__all__ = ["Checkpoint", "Epoch", "average_weights", "interpolate_weights"]


@dataclass(frozen=True, slots=True)
class Epoch:
    """The result of one pass over the training set."""

    number: int
    """From 1, through all tasks of a run."""
    loss: float
    """The mean over the steps."""
    seconds: float
    """Of training, without the evaluation."""
    dev: Mapping[str, float]
    """Measure → percent; empty without a dev set."""


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """Weights, optimizer state, history, and the state of random generators that need one."""

    settings: str
    """Network, recipe and data as text: a checkpoint with other settings is refused."""
    network: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    history: tuple[Epoch, ...]
    best: Mapping[str, Tensor] | None = None
    """The weights of the best epoch, if the recipe keeps those."""
    random: Mapping[str, Any] | None = None

    def save(self, path: Path) -> None:
        """Write the file completely or leave the old one."""
        state = {
            "settings": self.settings,
            "network": dict(self.network),
            "optimizer": dict(self.optimizer),
            "history": [asdict(epoch) for epoch in self.history],
            "best": None if self.best is None else dict(self.best),
            "random": None if self.random is None else dict(self.random),
        }
        with atomic_write(path) as stream:
            torch.save(state, stream)

    @classmethod
    def load(cls, path: Path, *, settings: str) -> Checkpoint:
        """Read a checkpoint with the same settings. It holds tensors and plain values, no code."""
        remedy = "Remove the file, or name another folder to write to."
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
            history = tuple(Epoch(**epoch) for epoch in state["history"])
            found = cls(**(state | {"history": history}))
        except (OSError, EOFError, RuntimeError, KeyError, TypeError, pickle.PickleError) as error:
            raise InputError(f"{path} cannot be read as a checkpoint. {remedy}") from error
        if found.settings != settings:
            raise InputError(
                f"{path} was written by a training with other settings. {remedy}\n"
                f"  in the file: {found.settings}\n  now:         {settings}"
            )
        return found


def average_weights(
    states: Sequence[Mapping[str, Tensor]], shares: Sequence[float] | None = None
) -> dict[str, Tensor]:
    """
    The weighted mean of states of one network; equal shares by default.

    The mean of several trainings from one start ranks like their ensemble at the cost of one model
    (Wortsman et al., 2022).
    """
    if not states:
        raise InputError("Expected at least one state to average, got none.")
    shares = [1 / len(states)] * len(states) if shares is None else shares
    if len(shares) != len(states):
        raise InputError(f"Expected a share for each of {len(states)} states, got {len(shares)}.")
    if any(state.keys() != states[0].keys() for state in states):
        raise InputError("Only states of the same network can be averaged.")
    return {name: _mean([state[name] for state in states], shares) for name in states[0]}


def interpolate_weights(
    start: Mapping[str, Tensor], trained: Mapping[str, Tensor], share: float
) -> dict[str, Tensor]:
    """
    Weights that are `share` of the way from `start` to `trained`.

    A share below 1 keeps more of what the start knew about other texts.
    """
    if not 0 <= share <= 1:
        raise InputError(f"share must be from 0 to 1, got {share}.")
    return average_weights([start, trained], [1 - share, share])


def _mean(values: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    if not values[0].is_floating_point():
        return values[0]  # position numbers and other buffers that are not trained
    return torch.stack([share * value for share, value in zip(shares, values, strict=True)]).sum(0)
