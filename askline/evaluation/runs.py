"""A run: what one ranker made of many questions, by ids, and the judgements to hold it against."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import InputError, RankerError
from ..types import Hit, Question

__all__ = ["Qrels", "Ranked", "Run", "judgements"]

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""Question id → candidate id → relevance. Above 0 is an answer; a candidate left out is none."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates of one question, best first. The order decides; scores may tie or rise."""

    ids: tuple[str, ...]
    scores: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.scores):
            raise InputError(
                f"Expected one score for each candidate, "
                f"got {len(self.ids)} candidates and {len(self.scores)} scores."
            )
        if len(set(self.ids)) != len(self.ids):
            doubled = next(id_ for id_ in self.ids if self.ids.count(id_) > 1)
            raise InputError(
                f"Candidate ids must be unique within a question, got {doubled!r} twice. "
                f"Give each candidate an id of its own."
            )
        if not all(map(math.isfinite, self.scores)):
            raise InputError("Scores must be finite numbers, got NaN or infinity.")

    @classmethod
    def from_hits(cls, question: Question, hits: Sequence[Hit]) -> Ranked:
        """The ranking of a question, checked: each candidate once, each score a real number."""
        indexes = [hit.index for hit in hits]
        scores = tuple([float(hit.score) for hit in hits])
        _check_permutation(question, indexes)
        if not all(map(math.isfinite, scores)):
            raise RankerError(
                f"Question {question.id!r}: a score is a finite number, got NaN or infinity."
            )
        candidates = question.candidates
        return cls(tuple([candidates[index].id for index in indexes]), scores)


@dataclass(frozen=True, slots=True)
class Run:
    """Rankings by question id, under the name of the ranker that made them."""

    name: str
    rankings: Mapping[str, Ranked]

    @classmethod
    def from_hits(cls, name: str, ranked: Iterable[tuple[Question, Sequence[Hit]]]) -> Run:
        """A run of questions with their hits, in the order given. Question ids must be unique."""
        rankings: dict[str, Ranked] = {}
        for question, hits in ranked:
            if question.id in rankings:
                raise InputError(
                    f"Question ids must be unique within a run, got {question.id!r} twice."
                )
            rankings[question.id] = Ranked.from_hits(question, hits)
        return cls(name, rankings)


def judgements(questions: Iterable[Question]) -> dict[str, dict[str, int]]:
    """Every candidate of every question with relevance 1 or 0, as qrels files hold them."""
    return {
        question.id: {candidate.id: int(candidate.is_answer) for candidate in question.candidates}
        for question in questions
    }


def _check_permutation(question: Question, indexes: Sequence[int]) -> None:
    count = len(question.candidates)
    if sorted(indexes) == list(range(count)):
        return
    times = Counter(indexes)
    lost = [index for index in range(count) if index not in times]
    doubled = [index for index, seen in times.items() if seen > 1]
    foreign = [index for index in times if not 0 <= index < count]
    raise RankerError(
        f"Question {question.id!r}: a ranking holds each of the {count} candidates once, "
        f"got {len(indexes)} hits; lost: {_few(lost)}; doubled: {_few(doubled)}; "
        f"out of range: {_few(foreign)}."
    )


def _few(indexes: Sequence[int]) -> str:
    shown = ", ".join(map(str, sorted(indexes)[:5]))
    return (shown + ", …" if len(indexes) > 5 else shown) or "none"
