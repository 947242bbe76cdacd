"""
Rankings with a report of what each stage did, and rankings that are ready by a deadline.

Both are small optional protocols, looked up in one place: a ranker without them is one stage that
just runs.

The one place where scores become an order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RankerError
from ..types import Hit, Ranker, Ranking, StageReport
from .deadline import Deadline, Stop

__all__ = [
    "Asked",
    "Calibrated",
    "FloatArray",
    "Interruptible",
    "Preparable",
    "Race",
    "Together",
    "Traceable",
    "by_score",
    "clock",
    "prepare",
    "spec_text",
    "trace",
    "trace_all",
    "trace_until",
]


class Asked(NamedTuple):
    """One question of several that are ranked together."""

    question: str
    candidates: Sequence[str]
    order: Sequence[int] | None = None
    """As `Interruptible.trace_until` has it."""


@runtime_checkable
class Traceable(Protocol):
    """A ranker of several stages, which can say what each of them did."""

    def trace(self, question: str, candidates: Sequence[str]) -> Ranking:
        """The hits that `rank` gives, with a report for each stage."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """A ranker that can stop half way and give the best ranking so far."""

    def trace_until(
        self,
        question: str,
        candidates: Sequence[str],
        time_is_up: Stop | None,
        order: Sequence[int] | None,
    ) -> Ranking:
        """
        As `trace`, but once time is up no further batch is begun.

        `order` has the positions of the candidates, the most promising first, where a stage before
        has found them: they are to be judged in that order, so that time runs out on the others.
        """
        ...


@runtime_checkable
class Together(Protocol):
    """A ranker that is faster with several questions at a time, and gives each the same."""

    def trace_all(self, asked: Sequence[Asked], time_is_up: Stop | None) -> list[Ranking]:
        """As `trace_until` for each; the time is that of all."""
        ...


@runtime_checkable
class Preparable(Protocol):
    """A ranker whose first question would take longer than others."""

    def prepare(self) -> None:
        """Do now what that question would wait for; nothing where it is done."""
        ...


@runtime_checkable
class Calibrated(Protocol):
    """A ranker whose scores are chances; a best one below `threshold` means "no answer here"."""

    @property
    def threshold(self) -> float: ...


def trace(
    ranker: Ranker, question: str, candidates: Sequence[str], deadline_ms: float | None = None
) -> Ranking:
    """
    Rank, and report candidates and seconds for each stage. Works for any ranker.

    With a deadline, the best ranking that was ready by then, and what was skipped; a ranker that
    cannot be interrupted just runs.
    """
    return trace_until(ranker, question, candidates, clock(ranker, deadline_ms), None)


def prepare(ranker: Ranker) -> None:
    """Let a ranker prepare itself, if it can."""
    if isinstance(ranker, Preparable):
        ranker.prepare()


def clock(ranker: Ranker, deadline_ms: float | None) -> Deadline | None:
    """A deadline that begins when the ranker is prepared; None for none."""
    deadline = Deadline.after(deadline_ms)
    if deadline is None:
        return None
    prepare(ranker)
    return Deadline.after(deadline_ms)


def trace_until(
    ranker: Ranker,
    question: str,
    candidates: Sequence[str],
    time_is_up: Stop | None,
    order: Sequence[int] | None,
) -> Ranking:
    """The one place that looks up what a ranker can do: be interrupted, be traced, or just run."""
    if isinstance(ranker, Interruptible):
        return ranker.trace_until(question, candidates, time_is_up, order)
    if isinstance(ranker, Traceable):
        return ranker.trace(question, candidates)
    start = time.perf_counter()
    hits = tuple(ranker.rank(question, candidates))
    seconds = time.perf_counter() - start
    _check_permutation(ranker, hits, len(candidates))
    report = StageReport(
        spec_text(ranker),
        len(candidates),
        len(hits),
        seconds,
        calibrated=isinstance(ranker, Calibrated),
    )
    return Ranking(hits, (report,))


def trace_all(ranker: Ranker, asked: Sequence[Asked], time_is_up: Stop | None) -> list[Ranking]:
    """All together where the ranker can, else one after the other."""
    if isinstance(ranker, Together):
        return ranker.trace_all(asked, time_is_up)
    return [
        trace_until(ranker, one.question, one.candidates, time_is_up, one.order) for one in asked
    ]


class Race:
    """The state of one question on its way through a pipeline."""

    def __init__(self, asked: Asked) -> None:
        self.question, self.candidates, self.order = asked
        self.going = list(range(len(self.candidates)))  # those still in the race
        self.hits: tuple[Hit, ...] = ()  # the same, best first, once a stage has judged them
        self.dropped: tuple[Hit, ...] = ()
        self.reports: list[StageReport] = []
        self.unjudged = 0

    def entering(self) -> Asked:
        """What the next stage is asked: those still in the race, in the original order."""
        texts = [self.candidates[position] for position in self.going]
        return Asked(self.question, texts, self.order)

    def take(self, part: Ranking, *, keep: int | None) -> None:
        """What a stage made of them; only the first `keep` go on."""
        going = self.going
        hits = tuple(
            Hit(going[hit.index], hit.score, hit.stage + len(self.reports)) for hit in part.hits
        )
        if part.unjudged and self.hits:
            judged = hits[: -part.unjudged]
            seen = {hit.index for hit in judged}
            hits = (*judged, *(hit for hit in self.hits if hit.index not in seen))
        elif part.unjudged:
            self.unjudged = part.unjudged
        times = len(self.candidates) / max(1, len(going))
        self.reports += [
            replace(stage, cost=stage.cost and stage.cost.among(times)) for stage in part.stages
        ]
        if keep is not None:
            hits, self.dropped = hits[:keep], hits[keep:] + self.dropped
        self.hits = hits
        self.going = sorted(hit.index for hit in hits)
        place = {position: own for own, position in enumerate(self.going)}
        self.order = [place[hit.index] for hit in hits]

    def ranking(self) -> Ranking:
        """The hits and reports of all stages."""
        return Ranking(self.hits + self.dropped, tuple(self.reports), self.unjudged)

    def skip(self, ranker: Ranker) -> None:
        """Time is up: the stage before has the last word."""
        self._unasked(ranker, skipped=len(self.going))

    def pass_over(self, ranker: Ranker) -> None:
        """A stage that would drop nobody, with one behind it that judges them all anyway."""
        self._unasked(ranker, skipped=0)

    def _unasked(self, ranker: Ranker, skipped: int) -> None:
        count = len(self.going)
        self.reports.append(StageReport(spec_text(ranker), count, count, 0.0, skipped=skipped))


def spec_text(ranker: Ranker) -> str:
    """The ranker as a spec text; the class name for one that has no text of its own."""
    own_text = type(ranker).__str__ is not object.__str__
    return str(ranker) if own_text else type(ranker).__name__


def _check_permutation(ranker: Ranker, hits: Sequence[Hit], expected: int) -> None:
    if len(hits) != expected or {hit.index for hit in hits} != set(range(expected)):
        raise RankerError(
            f"{spec_text(ranker)} must rank each of {expected} candidates exactly once, "
            f"but gave {len(hits)} hits over {len({hit.index for hit in hits})} of them."
        )


FloatArray = NDArray[np.float64]


def by_score(scores: ArrayLike, *, stage: int = 0) -> list[Hit]:
    """
    Highest score first; equal scores keep the original order.

    Infinite scores are fine, NaN is an error: it has no place in an order.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise RankerError(f"Scores must be one number a candidate, got shape {values.shape}.")
    unordered = np.isnan(values)
    if unordered.any():
        raise RankerError(f"Candidate {int(unordered.argmax())} has the score NaN.")
    order = np.argsort(-values, kind="stable")
    return [
        Hit(index, score, stage)
        for index, score in zip(order.tolist(), values[order].tolist(), strict=True)
    ]
