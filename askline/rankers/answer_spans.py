"""The words inside an answer that say it, from rankers whose last stage can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..engine.spans import Span
from ..types import Ranker
from .pipeline import last_ranker

__all__ = [
    "Reader",
    "phrases_in",
]


@runtime_checkable
class Reader(Protocol):
    """A ranker that points at the phrase in a candidate."""

    def read(self, question: str, candidates: Sequence[str]) -> list[Span | None]:
        """One span a candidate; None where there is nothing to point at."""
        ...


def phrases_in(ranker: Ranker, question: str, texts: Sequence[str]) -> list[Span | None]:
    """
    What in each text answers the question.

    None where the ranker cannot read, and where pointing at nothing is the better reading. Costs
    these texts at full depth once more: for the few that are shown.
    """
    last = last_ranker(ranker)
    if not isinstance(last, Reader):
        return [None] * len(texts)
    spans = last.read(question, texts)
    return [span if span and span.score > span.no_answer else None for span in spans]
