"""Small question sets and rankers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from askline.types import Candidate, Hit, Question, QuestionSet


@dataclass(frozen=True)
class Reversed:
    """Reverses the candidates and gives all the same score."""

    score: float = 0.0

    def __str__(self) -> str:
        return "reversed"

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return [Hit(index, self.score) for index in reversed(range(len(candidates)))]


@dataclass(frozen=True)
class Given:
    """Returns the given hits, or the candidates in their order."""

    hits: tuple[Hit, ...] | None = None

    def __str__(self) -> str:
        return "given"

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        if self.hits is not None:
            return list(self.hits)
        return [Hit(index, -float(index)) for index in range(len(candidates))]


def make_question(id_: str, labels: Sequence[int]) -> Question:
    candidates = tuple(
        Candidate(f"{id_}-{place}", f"Sentence {place} of {id_}.", is_answer=bool(label))
        for place, label in enumerate(labels)
    )
    return Question(id_, f"What is {id_}?", candidates)


@pytest.fixture
def tiny() -> QuestionSet:
    """The answer has rank 1, 2 and 3 of 3; the last question has none."""
    return QuestionSet(
        "tiny:test",
        (
            make_question("a", [1, 0, 0]),
            make_question("b", [0, 1, 0]),
            make_question("c", [0, 0, 1]),
            make_question("d", [0, 0, 0]),
        ),
    )
