"""Tiny question sets and rankers, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from askline.rankers.base import Ranker
from askline.rankers.deadline import Stop
from askline.rankers.requests import Request
from askline.types import Candidate, Hit, Question, QuestionSet, Ranking


@dataclass(frozen=True)
class Reversed(Ranker):
    """Puts the last candidate first and gives all the same score."""

    same: float = 0.0

    def __str__(self) -> str:
        return "reversed"

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        return [
            Ranking(tuple(Hit(at, self.same) for at in reversed(range(len(request.texts)))), ())
            for request in requests
        ]


@dataclass(frozen=True)
class Given(Ranker):
    """Returns the same hits for every question; without any, the original order."""

    hits: tuple[Hit, ...] | None = None

    def __str__(self) -> str:
        return "given"

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        return [
            Ranking(
                tuple(Hit(at, -float(at)) for at in range(len(request.texts)))
                if self.hits is None
                else self.hits,
                (),
            )
            for request in requests
        ]


def make_question(id_: str, labels: Sequence[int]) -> Question:
    candidates = tuple(
        Candidate(f"{id_}-{place}", f"Sentence {place} of {id_}.", is_answer=bool(label))
        for place, label in enumerate(labels)
    )
    return Question(id_, f"What is {id_}?", candidates)


@pytest.fixture
def tiny() -> QuestionSet:
    """Given order: places 1, 2 and 3 of 3, then none. Reversed: 3, 2 and 1."""
    return QuestionSet(
        "tiny:test",
        (
            make_question("a", [1, 0, 0]),
            make_question("b", [0, 1, 0]),
            make_question("c", [0, 0, 1]),
            make_question("d", [0, 0, 0]),
        ),
    )
