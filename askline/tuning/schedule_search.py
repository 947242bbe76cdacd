"""
The search for drop schedules: placements and keeps, tried on lists whose scores are known.

Classifier by classifier, what has been dropped so far is extended by every number of candidates
that the next one might keep. Of the ways to the same number at the same depth only the best few go
on: those to which no cheaper one is as good. Every way is a schedule too, when all that it has left
goes straight to full depth, and that is how it is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rankers.schedule import Step
from .candidate_lists import CandidateLists, RankArray

__all__ = [
    "Trial",
    "levels",
    "measure",
    "search",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_RATIO = 1.35  # between two keeps that are tried
_BEAM = 4  # ways to each number at each depth
_HOPELESS = 0.1  # ways that lose more P@1 than this are not followed


@dataclass(frozen=True, eq=False)
class Trial:
    """A schedule with what it gives and costs, question by question."""

    keeps: tuple[Step, ...]
    """A first stage stands at depth 0."""
    precision: FloatArray  # (questions,) P@1
    average_precision: FloatArray  # (questions,)
    cost: FloatArray  # (questions,) token-layers, relative to full depth
    agreement: FloatArray  # (questions,) whether full depth has the same candidate first
    weights: FloatArray = field(repr=False)  # (questions,)

    def mean(self, values: FloatArray) -> float:
        """Over the questions, as they are weighted."""
        return float(values @ self.weights)

    @property
    def p1(self) -> float:
        """Mean precision of the first place."""
        return self.mean(self.precision)

    @property
    def map(self) -> float:
        """Mean average precision."""
        return self.mean(self.average_precision)

    @property
    def price(self) -> float:
        """Mean cost."""
        return self.mean(self.cost)


def levels(count: int, ratio: float = _RATIO) -> list[int]:
    """Numbers of candidates worth a try, from `count` down to 1, each a little below the last."""
    found = [count]
    while found[-1] > 1:
        found.append(min(found[-1] - 1, round(found[-1] / ratio)))
    return found


def measure(lists: CandidateLists, keeps: Sequence[Step]) -> Trial:
    """One schedule on these lists."""
    way = _Way.begin(lists)
    for step in keeps:
        way = (way.judged(step.depth) if step.depth else way.lightly()).kept(step.keep)
    return way.trial()


def search(lists: CandidateLists, *, budget: float, first: bool = False) -> list[Trial]:
    """
    Many good schedules for lists of this length, full depth as the first of them.

    No way is followed past the budget, but ways are kept that reach it. With `first`, all but full
    depth begin with a cut of the first stage.
    """
    start = _Way.begin(lists)
    full = start.trial()
    tried = levels(lists.count)[1:]
    ways, trials = ([start], [full]) if not first else _firsts(start, full, tried)
    for depth in lists.depths[:-1]:
        new: dict[int, list[tuple[_Way, Trial]]] = {}
        for way in ways:
            judged = way.judged(depth)
            for keep in (number for number in tried if number < judged.left):
                onward = judged.kept(keep)
                trial = onward.trial()
                if trial.p1 < full.p1 - _HOPELESS:
                    break  # keeping fewer only loses more
                trials.append(trial)
                if trial.mean(onward.spent / lists.full) <= budget:
                    new.setdefault(keep, []).append((onward, trial))
        ways += [way for found in new.values() for way in _undominated(found)]
    return trials


def _firsts(start: _Way, full: Trial, tried: Sequence[int]) -> tuple[list[_Way], list[Trial]]:
    """Every cut of the first stage that is not hopeless and leaves something to decide."""
    judged = start.lightly()
    ways, trials = [], [full]
    for keep in (number for number in tried if number > 1):
        way = judged.kept(keep)
        trial = way.trial()
        if trial.p1 < full.p1 - _HOPELESS:
            break
        ways.append(way)
        trials.append(trial)
    return ways, trials


def _undominated(found: Sequence[tuple[_Way, Trial]]) -> list[_Way]:
    """The best few: cheapest first, each better than all cheaper ones."""
    best: list[_Way] = []
    mark = -1.0
    for way, trial in sorted(found, key=lambda pair: pair[1].price):
        worth = trial.p1 + 0.1 * trial.map  # MAP settles what P@1 leaves open
        if worth > mark:
            best.append(way)
            mark = worth
    return best[-_BEAM:]


@dataclass(frozen=True, eq=False)
class _Way:
    """Lists on their way down: who is left in each, and the share of AP that is settled."""

    lists: CandidateLists
    keeps: tuple[Step, ...]
    depth: int
    rows: IntArray  # (questions, left) into the flattened lists, best first by the last classifier
    tokens: FloatArray  # (questions,) of those left
    spent: FloatArray  # (questions,) token-layers
    settled: FloatArray  # (questions,) precision summed over the answers that were dropped

    @classmethod
    def begin(cls, lists: CandidateLists) -> _Way:
        rows = np.arange(lists.labels.size).reshape(lists.labels.shape)
        nothing = np.zeros(len(lists))
        return cls(lists, (), 0, rows, lists.tokens.sum(axis=1).astype(float), nothing, nothing)

    def judged(self, depth: int) -> _Judged:
        """All that are left, put in order by the classifier at that depth."""
        places = self.lists.places[self.lists.depths.index(depth)]
        way = replace(self, spent=self.spent + self.lists.fixed)
        return way._ordered(places, depth, depth - self.depth)

    def lightly(self) -> _Judged:
        """The same by the first stage, which has its own price."""
        assert self.lists.light is not None
        return self._ordered(self.lists.light, 0, self.lists.light_layers)

    def _ordered(self, places: RankArray, depth: int, layers: float) -> _Judged:
        order = np.argsort(places.ravel().take(self.rows), axis=1, kind="stable")
        rows = np.take_along_axis(self.rows, order, axis=1)
        labels = self.lists.labels.ravel().take(rows)
        tokens = np.cumsum(self.lists.tokens.ravel().take(rows), axis=1)
        way = replace(self, depth=depth, rows=rows, spent=self.spent + layers * self.tokens)
        return _Judged(way, _precision_from(labels), tokens)

    @property
    def to_come(self) -> FloatArray:
        """Token-layers from here to full depth."""
        return (self.lists.depths[-1] - self.depth) * self.tokens + self.lists.fixed

    def trial(self) -> Trial:
        """Straight to full depth."""
        lists = self.lists
        # Sorted together with their places, labels come out in the order of the last classifier.
        order = np.sort(lists.last.ravel().take(self.rows), axis=1, kind="stable")
        labels = order & 1
        return Trial(
            self.keeps,
            labels[:, 0].astype(float),
            (self.settled + _precision_from(labels)[:, 0]) / lists.answers,
            (self.spent + self.to_come) / lists.full,
            (order[:, 0] < 2).astype(float),
            lists.weights,
        )


@dataclass(frozen=True, eq=False)
class _Judged:
    """A way on which all that are left have just been put in order."""

    way: _Way
    dropped: FloatArray  # (questions, left) precision of the answers from each place on
    tokens: IntArray  # (questions, left) of those up to each place

    @property
    def left(self) -> int:
        return int(self.tokens.shape[1])

    def kept(self, keep: int) -> _Way:
        """Only the first so many."""
        if keep >= self.left:
            return self.way
        return replace(
            self.way,
            keeps=(*self.way.keeps, Step(self.way.depth, keep)),
            rows=self.way.rows[:, :keep],
            tokens=self.tokens[:, keep - 1].astype(float),
            settled=self.way.settled + self.dropped[:, keep],
        )


def _precision_from(labels: NDArray[Any]) -> FloatArray:
    """
    For each place, the precision at every answer from there on, summed.

    An answer at place r has as many answers at or above it as this order says, whatever later
    classifiers do: they only change the order among those before the cut.
    """
    found = labels * np.cumsum(labels, axis=1, dtype=np.float32)
    found /= np.arange(1, labels.shape[1] + 1, dtype=np.float32)
    return np.asarray(np.cumsum(found[:, ::-1], axis=1, dtype=np.float64)[:, ::-1])
