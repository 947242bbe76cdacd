"""`jaccard`: shared distinct words over all distinct words of the pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..text.words import words
from .algebra import ScoringRanker
from .sorting import FloatArray

__all__ = ["Jaccard"]


@dataclass(frozen=True)
class Jaccard(ScoringRanker):
    """From 0, nothing in common, to 1, the same words. Two texts without words score 0."""

    name: ClassVar[str] = "jaccard"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """|shared| / |either|, over distinct words."""
        asked = set(words(question))
        said = [set(words(candidate)) for candidate in candidates]
        shared = np.array([len(asked & own) for own in said], float)
        sizes = np.array([len(own) for own in said], float)
        either = len(asked) + sizes - shared
        return np.asarray(shared / np.maximum(either, 1.0))
