"""Tiny question sets and rankers, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from askline.types import Candidate, Hit, Question, QuestionSet


@dataclass(frozen=True)
class Reversed:
    """Puts the last candidate first and gives all the same score."""

    score: float = 0.0

    def __str__(self) -> str:
        return "reversed"

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return [Hit(index, self.score) for index in reversed(range(len(candidates)))]


@dataclass(frozen=True)
class Given:
    """Answers with the same hits whatever is asked."""

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
