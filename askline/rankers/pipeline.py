"""
Rankers as algebra: `a % 20 >> b` is a ranker like `a` and `b`.

`a % 20` cuts: of what `a` ranks, the first twenty go on. `a >> b` hands what goes on to `b`, in the
original order, for some rankers read that order. What was dropped follows the survivors, in the
order of the stage that dropped it, so that every candidate keeps a place and its measure stays
defined. A sequence inside a sequence is the same as one long sequence.

Where a question has a deadline, every stage is a point to stop at, and so is every batch of a stage
that can be interrupted. What was not judged in time keeps the place that the stage before gave it.

A ranker with a deadline of its own, for whoever calls `rank` without one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

from ..errors import InputError
from ..types import Hit, Ranker, Ranking
from .base import (
    Asked,
    Calibrated,
    FloatArray,
    Interruptible,
    Race,
    Traceable,
    by_score,
    clock,
    prepare,
    spec_text,
    trace,
    trace_all,
)
from .deadline import Deadline, Stop

__all__ = [
    "Calibrated",
    "Composable",
    "Cut",
    "Interruptible",
    "Pipeline",
    "ScoringRanker",
    "Traceable",
    "Within",
    "answer_threshold",
    "last_ranker",
    "trace",
]


class Composable:
    """What a ranker inherits to take part in the algebra."""

    def rank(
        self, question: str, candidates: Sequence[str], deadline_ms: float | None = None
    ) -> list[Hit]:
        """As `Ranker` has it: the best ranking ready by the deadline, where there is one."""
        raise NotImplementedError

    def __mod__(self, keep: int) -> Cut:
        return Cut(self, keep)

    def __rshift__(self, other: Ranker) -> Pipeline:
        return Pipeline((self, other))

    def __rrshift__(self, other: Ranker) -> Pipeline:
        return Pipeline((other, self))


class ScoringRanker(Composable, ABC):
    """
    A ranker that gives each candidate a number; `rank` is then the same for all of them.

    Subclasses are frozen dataclasses. Their fields are their options in a spec text.
    """

    name: ClassVar[str]

    @abstractmethod
    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """One number a candidate, in the order given. Called with at least one candidate."""

    def rank(
        self, question: str, candidates: Sequence[str], deadline_ms: float | None = None
    ) -> list[Hit]:
        """
        Every candidate exactly once, best first; equal scores keep the original order.

        It is one stage, which just runs, whatever the deadline.
        """
        Deadline.after(deadline_ms)  # what is no time is refused here as it is elsewhere
        check_input(question, candidates)
        return by_score(self.score(question, candidates)) if candidates else []

    def __str__(self) -> str:
        options = [
            f"{option.name}={value}"
            for option in fields(self)  # type: ignore[arg-type]
            if option.init and (value := getattr(self, option.name)) != option.default
        ]
        return f"{self.name}({', '.join(options)})" if options else self.name


class Staged(Composable, ABC):
    """A ranker of several stages: `rank`, `trace` and more for what gives `trace_all`."""

    @abstractmethod
    def trace_all(self, asked: Sequence[Asked], time_is_up: Stop | None) -> list[Ranking]:
        """As `Together` has it."""

    def trace_until(
        self,
        question: str,
        candidates: Sequence[str],
        time_is_up: Stop | None,
        order: Sequence[int] | None,
    ) -> Ranking:
        """As `Interruptible` has it."""
        return self.trace_all([Asked(question, candidates, order)], time_is_up)[0]

    def rank(
        self, question: str, candidates: Sequence[str], deadline_ms: float | None = None
    ) -> list[Hit]:
        """Every candidate exactly once, best first: the best ranking ready by the deadline."""
        return list(self.trace(question, candidates, deadline_ms).hits)

    def trace(
        self, question: str, candidates: Sequence[str], deadline_ms: float | None = None
    ) -> Ranking:
        """The hits that `rank` gives, with a report for each stage."""
        return self.trace_until(question, candidates, clock(self, deadline_ms), None)

    def rank_many(
        self, requests: Sequence[tuple[str, Sequence[str]]], deadline_ms: float | None = None
    ) -> list[list[Hit]]:
        """What `rank` gives for each question and its candidates; pairs share batches."""
        return [list(ranking.hits) for ranking in self.trace_many(requests, deadline_ms)]

    def trace_many(
        self, requests: Sequence[tuple[str, Sequence[str]]], deadline_ms: float | None = None
    ) -> list[Ranking]:
        """What `trace` gives for each; the deadline is that of all of them together."""
        return self.trace_all([Asked(*one) for one in requests], clock(self, deadline_ms))


@dataclass(frozen=True)
class Cut(Staged):
    """Ranks as its ranker does; in a sequence, only the first `keep` go on."""

    ranker: Ranker
    keep: int

    def __post_init__(self) -> None:
        if isinstance(self.keep, bool) or not isinstance(self.keep, int):
            raise InputError(f"keep must be a whole number, got {self.keep!r}.")
        if self.keep < 1:
            raise InputError(f"keep must be at least 1, got {self.keep}.")

    def trace_all(self, asked: Sequence[Asked], time_is_up: Stop | None) -> list[Ranking]:
        """The whole rankings; the report of the last stage says how many are kept."""
        return [self._marked(each) for each in trace_all(self.ranker, asked, time_is_up)]

    def prepare(self) -> None:
        """As `Preparable` has it."""
        prepare(self.ranker)

    def _marked(self, ranking: Ranking) -> Ranking:
        *earlier, last = ranking.stages
        last = replace(last, ranker=f"{last.ranker} % {self.keep}", kept=min(self.keep, last.kept))
        return replace(ranking, stages=(*earlier, last))

    def __str__(self) -> str:
        inner = spec_text(self.ranker)
        return f"({inner}) % {self.keep}" if _is_pipeline(self.ranker) else f"{inner} % {self.keep}"


@dataclass(frozen=True)
class Pipeline(Staged):
    """Stages in sequence: each ranks what the one before it kept."""

    stages: tuple[Ranker, ...] = field()

    def __post_init__(self) -> None:
        flat: list[Ranker] = []
        for stage in self.stages:
            flat.extend(stage.stages if isinstance(stage, Pipeline) else (stage,))
        if not flat:
            raise InputError("A pipeline needs at least one ranker, got none.")
        object.__setattr__(self, "stages", tuple(flat))

    def trace_all(self, asked: Sequence[Asked], time_is_up: Stop | None) -> list[Ranking]:
        """
        Survivors of all stages first, then what each stage dropped, latest stage first.

        A cut that would keep all is passed over: the next stage judges them anew, in the original
        order. With a deadline it is not, for its order is the one to judge them in.
        """
        for one in asked:
            check_input(one.question, one.candidates)
        races = [Race(one) for one in asked]
        for place, ranker in enumerate(self.stages):
            keep = ranker.keep if isinstance(ranker, Cut) else None
            late = bool(place) and time_is_up is not None and time_is_up()
            can_pass = keep is not None and time_is_up is None and ranker is not self.stages[-1]
            running = list[Race]()
            for race in races:
                if late:
                    race.skip(ranker)
                elif can_pass and len(race.going) <= (keep or 0):
                    race.pass_over(ranker)
                else:
                    running.append(race)
            parts = trace_all(ranker, [race.entering() for race in running], time_is_up)
            for race, part in zip(running, parts, strict=True):
                race.take(part, keep=keep)
        return [race.ranking() for race in races]

    def prepare(self) -> None:
        """Every stage, as `Preparable` has it."""
        for stage in self.stages:
            prepare(stage)

    def __str__(self) -> str:
        return " >> ".join(spec_text(stage) for stage in self.stages)


def last_ranker(ranker: Ranker) -> Ranker:
    """The one whose scores come out at the end."""
    while isinstance(ranker, (Cut, Pipeline)):
        ranker = ranker.ranker if isinstance(ranker, Cut) else ranker.stages[-1]
    return ranker


def answer_threshold(ranker: Ranker) -> float | None:
    """Below which best score there is no answer; None where scores are not calibrated."""
    last = last_ranker(ranker)
    return last.threshold if isinstance(last, Calibrated) else None


def check_input(question: str, candidates: Sequence[str]) -> None:
    """Refuse what is no list, such as a lone string, and anything in it that is not text."""
    if not isinstance(question, str):
        raise InputError(f"The question must be a string, got {type(question).__name__}.")
    if isinstance(candidates, (str, bytes)):
        raise InputError("Candidates must be a list of strings, got one string. Put it in a list.")
    if not isinstance(candidates, Sequence):  # such as a generator, which can be read only once
        kind = type(candidates).__name__
        raise InputError(f"Candidates must be a list of strings, got {kind}. Make a list of them.")
    for position, candidate in enumerate(candidates):
        if not isinstance(candidate, str):
            kind = type(candidate).__name__
            raise InputError(f"Candidate {position} must be a string, got {kind}.")


def _is_pipeline(ranker: Ranker) -> bool:
    return isinstance(ranker, Pipeline) and len(ranker.stages) > 1


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
