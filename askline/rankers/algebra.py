"""
Rankers as algebra: `a % 20 >> b` is a ranker like `a` and `b`.

`a % 20` cuts: of what `a` ranks, the first twenty go on. `a >> b` hands what goes on to `b`, in the
original order, for some rankers read that order. What was dropped follows the survivors, in the
order of the stage that dropped it, so that every candidate keeps a place and its measure stays
defined. A sequence inside a sequence is the same as one long sequence.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Protocol, runtime_checkable

from ..errors import InputError, RankerError
from ..types import Hit, Ranker, Ranking, StageReport
from .sorting import FloatArray, by_score

__all__ = ["Composable", "Cut", "Pipeline", "ScoringRanker", "Traceable", "trace"]


@runtime_checkable
class Traceable(Protocol):
    """A ranker of several stages, which can say what each of them did."""

    def trace(self, question: str, candidates: Sequence[str]) -> Ranking:
        """The hits that `rank` gives, with a report for each stage."""
        ...


def trace(ranker: Ranker, question: str, candidates: Sequence[str]) -> Ranking:
    """Rank, and report candidates and seconds for each stage. Works for any ranker."""
    if isinstance(ranker, Traceable):
        return ranker.trace(question, candidates)
    start = time.perf_counter()
    hits = tuple(ranker.rank(question, candidates))
    seconds = time.perf_counter() - start
    _check_permutation(ranker, hits, len(candidates))
    report = StageReport(spec_text(ranker), len(candidates), len(hits), seconds)
    return Ranking(hits, (report,))


class Composable:
    """What a ranker inherits to take part in the algebra."""

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
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

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        """Every candidate exactly once, best first; equal scores keep the original order."""
        check_input(question, candidates)
        return by_score(self.score(question, candidates)) if candidates else []

    def __str__(self) -> str:
        return spec_text(self)


@dataclass(frozen=True)
class Cut(Composable):
    """Ranks as its ranker does; in a sequence, only the first `keep` go on."""

    ranker: Ranker
    keep: int

    def __post_init__(self) -> None:
        if isinstance(self.keep, bool) or not isinstance(self.keep, int):
            raise InputError(f"keep must be a whole number, got {self.keep!r}.")
        if self.keep < 1:
            raise InputError(f"keep must be at least 1, got {self.keep}.")

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        """The ranking of the ranker that is cut, whole."""
        return self.ranker.rank(question, candidates)

    def trace(self, question: str, candidates: Sequence[str]) -> Ranking:
        """The same, and the report of the last stage says how many are kept."""
        ranking = trace(self.ranker, question, candidates)
        *earlier, last = ranking.stages
        last = replace(last, ranker=f"{last.ranker} % {self.keep}", kept=min(self.keep, last.kept))
        return Ranking(ranking.hits, (*earlier, last))

    def __str__(self) -> str:
        inner = spec_text(self.ranker)
        return f"({inner}) % {self.keep}" if _is_pipeline(self.ranker) else f"{inner} % {self.keep}"


@dataclass(frozen=True)
class Pipeline(Composable):
    """Stages in sequence: each ranks what the one before it kept."""

    stages: tuple[Ranker, ...] = field()

    def __post_init__(self) -> None:
        flat: list[Ranker] = []
        for stage in self.stages:
            flat.extend(stage.stages if isinstance(stage, Pipeline) else (stage,))
        if not flat:
            raise InputError("A pipeline needs at least one ranker, got none.")
        object.__setattr__(self, "stages", tuple(flat))

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        """Survivors of all stages first, then what each stage dropped, latest stage first."""
        return list(self.trace(question, candidates).hits)

    def trace(self, question: str, candidates: Sequence[str]) -> Ranking:
        """The hits that `rank` gives, with a report for each stage."""
        check_input(question, candidates)
        going = list(range(len(candidates)))  # positions still in the race, in original order
        hits: tuple[Hit, ...] = ()
        dropped: tuple[Hit, ...] = ()
        reports: list[StageReport] = []
        for ranker in self.stages:
            part = trace(ranker, question, [candidates[position] for position in going])
            hits = tuple(
                Hit(going[hit.index], hit.score, hit.stage + len(reports)) for hit in part.hits
            )
            if isinstance(ranker, Cut):
                hits, dropped = hits[: ranker.keep], hits[ranker.keep :] + dropped
            going = sorted(hit.index for hit in hits)
            reports.extend(part.stages)
        return Ranking(hits + dropped, tuple(reports))

    def __str__(self) -> str:
        return " >> ".join(spec_text(stage) for stage in self.stages)


def spec_text(ranker: Ranker) -> str:
    """The ranker as a spec text; the class name for one that has no text of its own."""
    if isinstance(ranker, ScoringRanker) and type(ranker).__str__ is ScoringRanker.__str__:
        options = [
            f"{option.name}={value}"
            for option in fields(ranker)  # type: ignore[arg-type]
            if option.init and (value := getattr(ranker, option.name)) != option.default
        ]
        return f"{ranker.name}({', '.join(options)})" if options else ranker.name
    own_text = type(ranker).__str__ is not object.__str__
    return str(ranker) if own_text else type(ranker).__name__


def check_input(question: str, candidates: Sequence[str]) -> None:
    """Refuse a lone string in place of a list, and anything in the list that is not text."""
    if not isinstance(question, str):
        raise InputError(f"The question must be a string, got {type(question).__name__}.")
    if isinstance(candidates, (str, bytes)):
        raise InputError("Candidates must be a list of strings, got one string. Put it in a list.")
    for position, candidate in enumerate(candidates):
        if not isinstance(candidate, str):
            kind = type(candidate).__name__
            raise InputError(f"Candidate {position} must be a string, got {kind}.")


def _is_pipeline(ranker: Ranker) -> bool:
    return isinstance(ranker, Pipeline) and len(ranker.stages) > 1


def _check_permutation(ranker: Ranker, hits: Sequence[Hit], expected: int) -> None:
    if len(hits) != expected or {hit.index for hit in hits} != set(range(expected)):
        raise RankerError(
            f"{spec_text(ranker)} must rank each of {expected} candidates exactly once, "
            f"but gave {len(hits)} hits over {len({hit.index for hit in hits})} of them."
        )
