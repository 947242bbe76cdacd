"""
Candidate lists drawn anew for every step: own sentences, and others from elsewhere.

Of sentences from elsewhere nearly all are too easy to teach anything, so the network that is being
trained scores a handful and learns from those that it takes most for an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Question
from .negatives import Negatives, pool_of
from .pairs import PairSet
from .texts import TextTable

__all__ = ["Drawn", "ListSource", "Part", "Plan", "Pool", "SampledLists", "Scorer"]

Scorer = Callable[[PairSet], NDArray[np.floating[Any]]]
"""Pairs → a score for each, by the network as it is; no gradients."""


class ListSource(Protocol):
    """What a training draws its steps from. `PairSet` always gives its lists whole."""

    @property
    def name(self) -> str:
        """What the training is told to have been on."""
        ...

    def __len__(self) -> int:
        """The number of questions."""
        ...

    def draw(
        self, chosen: NDArray[np.int64], random: np.random.Generator, score: Scorer
    ) -> PairSet:
        """The lists of these questions, in their order, for one step."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How many negatives of each kind a list gets, beside all its answers."""

    own: int = 5
    """Sentences of the same paragraph."""
    hard: int = 2
    """Those that BM25 finds in all sentences."""
    lone: int = 3
    """Hard ones besides, where the question has no own ones."""
    near: int = 1
    """Sentences of the same article."""
    elsewhere: int = 3
    """Random sentences of the questions that have the same plan."""
    drawn: int = 16
    """Random sentences from which those `elsewhere` are the ones that score highest."""
    hard_drawn: int = 0
    """The same for `hard`; where it is not more than those, they are drawn at random."""
    near_drawn: int = 0
    """The same for `near`."""

    def __post_init__(self) -> None:
        for name in ("own", "hard", "lone", "near", "elsewhere", "hard_drawn", "near_drawn"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")
        if self.drawn < self.elsewhere:
            raise InputError(
                f"drawn must be at least elsewhere ({self.elsewhere}), got {self.drawn}."
            )


@dataclass(frozen=True, slots=True)
class Part:
    """Questions with an answer, and the plan of their lists."""

    questions: tuple[Question, ...]
    plan: Plan


class Pool(NamedTuple):
    """Numbers of texts of one kind, of which the `keep` that score highest are taken."""

    texts: list[int]
    keep: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """One list, as numbers of the table of texts."""

    question: int
    candidates: list[int]
    labels: list[float]
    pools: list[Pool]
    """What joins the list of each as negatives is for the network to choose."""


class SampledLists:
    """A `ListSource` over one or more parts; `negatives` are those of all their questions."""

    def __init__(
        self, name: str, parts: Sequence[Part], negatives: Negatives, tokeniser: Any
    ) -> None:
        self.name = f"{name}, {', '.join(str(part.plan) for part in parts)}"
        questions = [question for part in parts for question in part.questions]
        if not all(question.answerable for question in questions):
            raise InputError("Lists are drawn for questions with an answer only. Select those.")
        if len(negatives.hard) != len(questions):
            raise InputError(
                f"Expected negatives of {len(questions)} questions, got {len(negatives.hard)}."
            )
        # The sentences of the pool have the lowest numbers, which are their places in it.
        number = {text: place for place, text in enumerate(pool_of(questions))}
        mined = zip(negatives.hard, negatives.near, strict=True)
        self._lists: list[_List] = []
        for part in parts:
            elsewhere = np.array([number[text] for text in pool_of(part.questions)])
            for question in part.questions:
                texts = (question.text, *question.texts)
                asked, *own = (number.setdefault(text, len(number)) for text in texts)
                hard, near = (row[row >= 0] for row in next(mined))
                self._lists.append(_List.of(question, asked, own, hard, near, elsewhere, part.plan))
        self.texts = TextTable.encode(list(number), tokeniser)

    def __len__(self) -> int:
        return len(self._lists)

    def with_negatives(self, negatives: Negatives) -> SampledLists:
        """The same questions and plans with other negatives; the tokens are shared."""
        other = copy(self)
        mined = zip(self._lists, negatives.hard, negatives.near, strict=True)
        other._lists = [
            replace(own, hard=hard[hard >= 0], near=near[near >= 0]) for own, hard, near in mined
        ]
        return other

    def one(self, place: int, random: np.random.Generator) -> Drawn:
        """A list for one question, before the network has chosen from its pools."""
        return self._lists[place].draw(random)

    def draw(
        self, chosen: NDArray[np.int64], random: np.random.Generator, score: Scorer
    ) -> PairSet:
        """Answers first in every list: nothing that is trained here reads the order."""
        return self.pairs(self.whole(chosen, random, score))

    def whole(
        self, chosen: NDArray[np.int64], random: np.random.Generator, score: Scorer
    ) -> list[Drawn]:
        """The lists of these questions with what the network chose from their pools."""
        drawn = [self.one(int(place), random) for place in chosen]
        for own, added in zip(drawn, self._hardest(drawn, score), strict=True):
            own.candidates.extend(added)
            own.labels.extend([0.0] * len(added))
        return drawn

    def pairs(self, drawn: Sequence[Drawn]) -> PairSet:
        """Whole lists in this table's tokens."""
        rows = [(own.question, own.candidates) for own in drawn]
        return self.texts.pairs(rows, [y for own in drawn for y in own.labels], name=self.name)

    def _hardest(self, drawn: Sequence[Drawn], score: Scorer) -> Iterator[list[int]]:
        """Of each list's pools, what the network takes most for an answer."""
        pools = [(own.question, pool) for own in drawn for pool in own.pools]
        pairs = self.texts.pairs((question, pool.texts) for question, pool in pools)
        scores = score(pairs) if len(pairs.tokens) else np.zeros(0)
        chosen = (
            [pool.texts[place] for place in np.argsort(-values, kind="stable")[: pool.keep]]
            for (_, pool), values in zip(pools, np.split(scores, pairs.offsets[1:-1]), strict=True)
        )
        for own in drawn:
            yield [text for _ in own.pools for text in next(chosen)]


@dataclass(frozen=True, slots=True, eq=False)
class _List:
    """What a question's lists are drawn from: numbers of texts."""

    asked: int
    answers: list[int]
    others: list[int]
    hard: NDArray[np.int32]
    near: NDArray[np.int32]
    elsewhere: NDArray[np.int64]  # shared by all questions of a part
    plan: Plan

    @classmethod
    def of(cls, question: Question, asked: int, own: Sequence[int], *rest: Any) -> _List:
        labels = [candidate.is_answer for candidate in question.candidates]
        answers = [text for text, answer in zip(own, labels, strict=True) if answer]
        others = [text for text, answer in zip(own, labels, strict=True) if not answer]
        return cls(asked, answers, others, *rest)

    def draw(self, random: np.random.Generator) -> Drawn:
        plan = self.plan
        lone = 0 if self.others else plan.lone
        others, pools = list[int](), list[Pool]()
        for source, size, drawn in (
            (self.others, plan.own, 0),
            (self.hard, plan.hard + lone, plan.hard_drawn and plan.hard_drawn + lone),
            (self.near, plan.near, plan.near_drawn),
        ):
            found = [int(text) for text in _some(source, max(size, drawn), random)]
            if len(found) > size:
                pools.append(Pool(found, size))
            else:
                others += found
        if plan.elsewhere and len(self.elsewhere):
            pools.append(Pool(self._random(random), plan.elsewhere))
        labels = [1.0] * len(self.answers) + [0.0] * len(others)
        return Drawn(self.asked, self.answers + others, labels, pools)

    def _random(self, random: np.random.Generator) -> list[int]:
        own = {*self.answers, *self.others}
        texts = self.elsewhere[random.integers(len(self.elsewhere), size=self.plan.drawn)]
        return [int(text) for text in texts if int(text) not in own]


def _some(
    source: Sequence[int] | NDArray[np.int32], size: int, random: np.random.Generator
) -> Sequence[int] | NDArray[np.int32]:
    return source if len(source) <= size else random.choice(source, size, replace=False)
