"""`random`: what guessing is worth. The same seed and question always give the same order."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .algebra import ScoringRanker
from .sorting import FloatArray

__all__ = ["RandomOrder", "uniform_scores"]


def uniform_scores(question: str, count: int, seed: int) -> FloatArray:
    """Numbers in [0, 1) that depend on the question and the seed, not on any earlier call."""
    # crc32, not hash(): the latter differs from one process to the next.
    question_key = zlib.crc32(question.encode("utf-8", "surrogatepass"))
    return np.random.default_rng([seed % 2**64, question_key]).random(count)


@dataclass(frozen=True)
class RandomOrder(ScoringRanker):
    """A fixed shuffle for each question."""

    name: ClassVar[str] = "random"

    seed: int = 0

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """Uniform numbers in [0, 1)."""
        return uniform_scores(question, len(candidates), self.seed)
