"""`rr`: the order given. On documents it is a strong baseline: answers stand early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .algebra import ScoringRanker
from .sorting import FloatArray

__all__ = ["OriginalOrder"]


@dataclass(frozen=True)
class OriginalOrder(ScoringRanker):
    """Scores are reciprocal ranks: 1, 1/2, 1/3, …"""

    name: ClassVar[str] = "rr"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:  # noqa: ARG002
        """The reciprocal of each candidate's place."""
        return np.asarray(1.0 / np.arange(1, len(candidates) + 1))
