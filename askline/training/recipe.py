"""How a network is trained, apart from what it is and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import InputError, UnknownNameError
from ..models.light_config import CompareAggregateLayout, CosinetLayout, Layout
from .losses import LOSSES, Loss

__all__ = ["Epoch", "Recipe", "recipe_for"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """
    Adam under a slanted triangular rate.

    Cosinet's authors took one question a step with a peak of 2e-4 for lists, and 2e-3 for points;
    three epochs, and the last one is kept. Steps of several questions at a higher rate come to the
    same accuracy in a third of the time: `research/notes/light-rankers.md`.
    """

    loss: Loss = "list"
    epochs: int = 3
    rate: float = 1e-3
    """The peak of the learning rate."""
    batch: int = 16
    """Questions a step, each with all its candidates."""
    dropout: float = 0.0
    seed: int = 0
    keep: Literal["last", "best"] = "last"
    """Which epoch's weights come out; the best is by the first dev measure, the first of equals."""

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise UnknownNameError("loss", self.loss, LOSSES)
        if self.keep not in ("last", "best"):
            raise InputError(f"keep must be 'last' or 'best', got {self.keep!r}.")
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.rate > 0:
            raise InputError(f"rate must be above 0, got {self.rate}.")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}.")
        if self.seed < 0:
            raise InputError(f"seed must be at least 0, got {self.seed}.")


def recipe_for(layout: Layout, loss: Loss = "list") -> Recipe:
    """What cross-validation on WikiQA's train and dev questions chose for a network."""
    if isinstance(layout, CosinetLayout):
        return (
            Recipe(loss=loss) if layout.list_layer != "none" else Recipe(loss, rate=4e-3, batch=4)
        )
    if isinstance(layout, CompareAggregateLayout):
        return Recipe(loss, rate=5e-4 if layout.list_layer != "none" else 2e-3, batch=4)
    return Recipe(loss, rate=1e-3, batch=4)


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
