"""What each stage of a ranker thought of each candidate, written down while it ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..rankers.algebra import Cut, Pipeline
from ..rankers.deadline import Stop
from ..rankers.tracing import trace_until
from ..types import Hit, Ranker, Ranking

__all__ = ["Noting", "Thought"]


@dataclass(frozen=True, slots=True)
class Thought:
    """One stage about one candidate."""

    stage: int
    score: float
    place: int
    """Its rank in that stage, from 1."""


class _Placed(str):
    """A candidate that knows its place in the caller's list, whichever stage it has come to."""

    __slots__ = ("place",)
    place: int


class Noting:
    """A ranker that ranks as another does, until a deadline, and remembers its last question."""

    def __init__(self, ranker: Ranker, time_is_up: Stop | None = None) -> None:
        self._notes: list[_Noted] = []
        self._ranker = self._noted(ranker)
        self._name = str(ranker)
        self._time_is_up = time_is_up
        self.ranking = Ranking((), ())

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        """As the ranker does."""
        return list(self.trace_until(question, candidates, None, None).hits)

    def trace_until(
        self,
        question: str,
        candidates: Sequence[str],
        time_is_up: Stop | None,
        order: Sequence[int] | None,
    ) -> Ranking:
        """As the ranker does; the deadline is that of this call or the ranker's own."""
        placed = [_placed(text, place) for place, text in enumerate(candidates)]
        until = time_is_up or self._time_is_up
        self.ranking = trace_until(self._ranker, question, placed, until, order)
        return self.ranking

    def thoughts(self) -> dict[int, list[Thought]]:
        """By the candidate's place in the list, earlier stages first."""
        found: dict[int, list[Thought]] = {}
        first = 0  # the number of the note's first stage
        for note in self._notes:
            for place, hit in enumerate(note.hits, start=1):
                thought = Thought(first + hit.stage, hit.score, place)
                found.setdefault(hit.index, []).append(thought)
            first += note.stages
        return found

    def __str__(self) -> str:
        return self._name

    def _noted(self, ranker: Ranker) -> Ranker:
        """The same ranker with a note at each of its leaves."""
        if isinstance(ranker, Pipeline):
            return Pipeline(tuple(self._noted(stage) for stage in ranker.stages))
        if isinstance(ranker, Cut):
            return Cut(self._noted(ranker.ranker), ranker.keep)
        self._notes.append(note := _Noted(ranker))
        return note


class _Noted:
    """A leaf that keeps the hits it gave, by the places of the whole list."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker
        self.hits: list[Hit] = []
        self.stages = 1

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return self.ranker.rank(question, candidates)

    def trace_until(
        self,
        question: str,
        candidates: Sequence[str],
        time_is_up: Stop | None,
        order: Sequence[int] | None,
    ) -> Ranking:
        ranking = trace_until(self.ranker, question, candidates, time_is_up, order)
        judged = len(ranking.hits) - ranking.unjudged
        self.stages = len(ranking.stages)
        self.hits = [
            Hit(getattr(candidates[hit.index], "place", hit.index), hit.score, hit.stage)
            for hit in ranking.hits[:judged]
        ]
        return ranking

    def __str__(self) -> str:
        return str(self.ranker)


def _placed(text: str, place: int) -> _Placed:
    placed = _Placed(text)
    placed.place = place
    return placed
