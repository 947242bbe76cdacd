"""How a transformer is trained, on what, and what it is measured on."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Literal

from ...errors import InputError
from ...types import QuestionSet
from .objectives import Objective
from .pairs import PairSet
from .sampling import ListSource

__all__ = ["Dev", "Phase", "TransformerRecipe"]


@dataclass(frozen=True, slots=True)
class TransformerRecipe:
    """AdamW under a triangular rate; the values that transferred best are the defaults."""

    objective: Objective = field(default_factory=Objective)
    epochs: int = 2
    rate: float = 6e-5
    """The peak of the learning rate."""
    batch: int = 48
    """Questions a step, each with all its candidates."""
    tokens: int = 16_384
    """Padded tokens held at once; a step of more is split and its gradients are added up."""
    decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    keep: Literal["best", "last"] = "best"
    """Which epoch's weights come out of the last phase; the best is by the first dev measure."""

    seconds: float = inf
    """Time for all epochs together: where it is short, the rate falls faster and steps are cut."""
    steps: float = inf
    """The most steps of all epochs together, at the last of which the rate has fallen."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "rate", "tokens", "clip", "seconds", "steps"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}.")
        for name in ("decay", "seed"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")
        if self.keep not in ("best", "last"):
            raise InputError(f"keep must be 'best' or 'last', got {self.keep!r}.")


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What to learn from and how. Questions without candidates must be left out before."""

    lists: ListSource
    recipe: TransformerRecipe


@dataclass(frozen=True, slots=True, eq=False)
class Dev:
    """The set that tells the best epoch, by the first of its measures."""

    questions: QuestionSet
    pairs: PairSet
