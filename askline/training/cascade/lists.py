"""
What a step of training draws its lists from.

Candidates are text numbers, rows of one table, so that a text is tokenised once however often it is
drawn. Lists with texts from elsewhere come from `SampledLists`; what is added here is where in an
answer sentence the answer stands, for the reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import QuestionSet
from ..packed.packing import Rows, TokenTable
from ..packed.templates import PairTemplate
from ..transformer.sampling import SampledLists

__all__ = ["Drawn", "ListSource", "SampledSource", "WholeSource"]

LIMIT = 160
"""Tokens of a pair in training; what is beyond is cut: 0.1 % of the sets' sentences."""


class Drawn(NamedTuple):
    """One list."""

    question: int
    candidates: Rows
    labels: NDArray[np.float32]
    spans: NDArray[np.int64]  # (candidates, 2)
    """First and last token of the answer in a candidate, -1 where none is known."""
    pools: tuple[tuple[Rows, int], ...] = ()
    """Texts, and how many of them, the hardest, are still to be added."""

    def plus(self, chosen: Rows) -> Drawn:
        """With more texts that are no answer, and no pools."""
        return Drawn(
            self.question,
            np.concatenate([self.candidates, chosen]),
            np.concatenate([self.labels, np.zeros(len(chosen), np.float32)]),
            np.concatenate([self.spans, np.full((len(chosen), 2), -1)]),
        )


class ListSource(Protocol):
    """Questions in order, a list for each whenever it is asked for."""

    name: str
    table: TokenTable
    template: PairTemplate

    def __len__(self) -> int:
        """The number of questions."""
        ...

    def draw(self, place: int, random: np.random.Generator) -> Drawn:
        """A list of the question at that place."""
        ...


class SampledSource:
    """Lists with texts from elsewhere; the network's hardest are chosen from pools."""

    def __init__(self, lists: SampledLists, spans: Sequence[NDArray[np.int64]] = ()) -> None:
        """`spans` has those of each question's answers, (answers, 2), in the order of the lists."""
        if spans and len(spans) != len(lists):
            raise InputError(f"Expected spans of {len(lists)} questions, got {len(spans)}.")
        self.name, self.lists, self.spans = lists.name, lists, spans
        self.table, self.template = lists.texts.texts, lists.texts.template

    def __len__(self) -> int:
        return len(self.lists)

    def draw(self, place: int, random: np.random.Generator) -> Drawn:
        found = self.lists.one(place, random)
        spans = np.full((len(found.candidates), 2), -1)
        if self.spans:
            own = self.spans[place]  # answers come first in every list
            spans[: len(own)] = own
        return Drawn(
            found.question,
            np.array(found.candidates, np.int64),
            np.array(found.labels, np.float32),
            spans,
            tuple((np.array(pool.texts, np.int64), pool.keep) for pool in found.pools),
        )


class WholeSource:
    """Every question's own candidates, at most `most` of them, all answers among those."""

    def __init__(self, questions: QuestionSet, tokeniser: Any, *, most: int = 30) -> None:
        kept = [question for question in questions if question.candidates]
        if not kept:
            raise InputError(f"{questions.name} has no question with candidates to train on.")
        self.name, self.most = questions.name, most
        numbers: dict[str, int] = {}
        self._rows = [
            (
                numbers.setdefault(question.text, len(numbers)),
                np.array([numbers.setdefault(text, len(numbers)) for text in question.texts]),
                np.array([each.is_answer for each in question.candidates], np.float32),
            )
            for question in kept
        ]
        self.table = TokenTable.of(list(numbers), tokeniser)
        self.template = PairTemplate.of(tokeniser)

    def __len__(self) -> int:
        return len(self._rows)

    def draw(self, place: int, random: np.random.Generator) -> Drawn:
        question, candidates, labels = self._rows[place]
        if len(candidates) > self.most:
            order = np.argsort(labels + random.random(len(labels)))[::-1]  # answers first
            chosen = np.sort(order[: self.most])
            candidates, labels = candidates[chosen], labels[chosen]
        spans = np.full((len(candidates), 2), -1)
        return Drawn(question, candidates, labels, spans)
