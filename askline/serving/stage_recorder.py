"""What each stage of a ranker thought of each candidate, written down while it ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..engine.protocols import Span, StagedRun
from ..rankers.base import trace_until
from ..rankers.cascade import Cascade
from ..rankers.deadline import Stop
from ..rankers.pipeline import Cut, Pipeline
from ..types import Hit, Ranker, Ranking

__all__ = [
    "Noting",
    "Thought",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


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
            for own in note.judged:
                for place, hit in enumerate(own, start=1):
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
        self.judged: list[list[Hit]] = []
        """Best first; a list for each stage, or one for all where the leaf gives no more away."""
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
        if isinstance(self.ranker, Cascade):
            listening = _Listening(self.ranker)
            heard = replace(self.ranker, encoder=listening)
            ranking = trace_until(heard, question, candidates, time_is_up, order)
            judged, candidates = listening.judged, listening.begun
        else:
            ranking = trace_until(self.ranker, question, candidates, time_is_up, order)
            judged = [list(ranking.hits[: len(ranking.hits) - ranking.unjudged])]
        self.stages = len(ranking.stages)
        self.judged = [
            [replace(hit, index=_place(candidates[hit.index], hit.index)) for hit in own]
            for own in judged
        ]
        return ranking

    def __str__(self) -> str:
        return str(self.ranker)


class _Listening:
    """A cascade's encoder that remembers what each classifier said; for one question."""

    def __init__(self, cascade: Cascade) -> None:
        self._cascade = cascade
        self._run: StagedRun
        self.begun: Sequence[str] = ()
        """The candidates that `judged` counts: a deadline may let only some begin."""
        self.judged: list[list[Hit]] = []

    @property
    def depths(self) -> tuple[int, ...]:
        return self._cascade.encoder.depths

    @property
    def layers(self) -> int:
        return self._cascade.encoder.layers

    def begin(self, question: str, candidates: Sequence[str]) -> StagedRun:
        self._run, self.begun = self._cascade.encoder.begin(question, candidates), candidates
        return self

    @property
    def tokens(self) -> IntArray:
        return self._run.tokens

    def advance(self, rows: IntArray, depth: int, *, stop: Stop | None = None) -> FloatArray:
        logits = self._run.advance(rows, depth, stop=stop)
        seen = ~np.isnan(logits)
        reached, chances = rows[seen], self._cascade.chances(depth, logits[seen])
        best = np.lexsort((reached, -chances))  # equal ones as given
        stage = len(self.judged)
        self.judged.append([Hit(int(reached[at]), float(chances[at]), stage) for at in best])
        return logits

    def read(self, rows: IntArray) -> list[Span | None]:
        return self._run.read(rows)


def _placed(text: str, place: int) -> _Placed:
    placed = _Placed(text)
    placed.place = place
    return placed


def _place(text: str, here: int) -> int:
    """Where in the whole list; here, where nothing else is known."""
    return text.place if isinstance(text, _Placed) else here
