"""How a cascade is trained, apart from what it is and on what."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from ...errors import InputError
from .objectives import CascadeObjective

__all__ = ["ADAPT", "FIT", "TRANSFER", "CascadeRecipe", "anchored"]


@dataclass(frozen=True, slots=True)
class CascadeRecipe:
    """AdamW under a triangular rate; research/notes/cascade.md has what chose the values."""

    objective: CascadeObjective = field(default_factory=CascadeObjective)
    epochs: int = 2
    rate: float = 8e-5
    """The peak of the learning rate."""
    head_rate: float = 2.0
    """How many times as much the classifiers and the reader take."""
    batch: int = 48
    """Lists a step."""
    paragraphs: int = 48
    """Paragraphs a step, for the reader."""
    seconds: float = math.inf
    """Of training, when the rate is at its lowest and the phase ends, whatever is left of it."""
    tokens: int = 65_536
    """Held at once; a step of more is split and its gradients are added up."""
    frozen: bool = False
    """Whether only the classifiers and the reader learn, and the encoder stays as it is."""
    dropout: bool = True
    """Whether the encoder's states are dropped out while it learns; classifiers' always are."""
    keep_last: bool = False
    """Whether the last classifier stays as the start has it."""
    decay: float = 0.01
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "rate", "head_rate", "seconds", "tokens", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}.")
        for name in ("decay", "seed", "paragraphs"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")


FIT = CascadeRecipe(epochs=1, rate=1e-3, batch=192, paragraphs=96, frozen=True)
"""Before the transfer: new classifiers learn what the encoder already tells them."""
TRANSFER = CascadeRecipe()
ADAPT = CascadeRecipe(
    CascadeObjective(point=1.0, teach=0.0, from_teacher=0.0, reading=0.0),
    epochs=3,
    rate=3e-5,
    head_rate=1.0,
    batch=16,
    paragraphs=0,
)
"""Lists as they stand; no teacher, which knows less of the new set than its labels do."""


def anchored(recipe: CascadeRecipe) -> CascadeRecipe:
    """
    The same with full depth held to what the start, which teaches, makes of a pair.

    The start's own classifier stays. What it reads is learnt from the teacher, and nothing that
    would draw it elsewhere: no label at the last depth, no dropout, no reader.
    """
    objective = replace(recipe.objective, teach=1.0, anchor=100.0, reading=0.0)
    return replace(recipe, objective=objective, dropout=False, keep_last=True, paragraphs=0)
