"""A ranker with a deadline of its own, for whoever calls `rank` without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..types import Hit, Ranker
from .algebra import Composable
from .tracing import spec_text, trace

__all__ = ["Within"]


@dataclass(frozen=True)
class Within(Composable):
    """The best ranking that is ready so many milliseconds after each call."""

    ranker: Ranker
    deadline_ms: float

    def rank(
        self, question: str, candidates: Sequence[str], deadline_ms: float | None = None
    ) -> list[Hit]:
        """Every candidate exactly once; two calls may differ, as the time left for them does."""
        within = self.deadline_ms if deadline_ms is None else min(self.deadline_ms, deadline_ms)
        return list(trace(self.ranker, question, candidates, within).hits)

    def __str__(self) -> str:
        return f"{spec_text(self.ranker)} within {self.deadline_ms:g} ms"
