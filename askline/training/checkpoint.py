"""What a broken-off training goes on from: the state after the last whole epoch."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..text.atomic_write import replacing
from .recipe import Epoch

__all__ = ["Checkpoint"]


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
        with replacing(path) as stream:
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
