"""
The search for drop schedules on candidate lists whose scores are known.

A schedule says after which layers candidates are dropped and how many are kept. The search goes
from classifier to classifier and extends each partial schedule by every number of candidates that
the next classifier might keep. Of the partial schedules that keep the same number at the same
depth, only the best few are extended: those that beat all cheaper ones (a beam search). A partial
schedule is measured as if all candidates that it keeps went straight to full depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rankers.schedule import Step
from .score_tables import CandidateLists, RankArray

__all__ = [
    "Trial",
    "measure",
    "search",
    "tried_counts",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_RATIO = 1.35  # between two numbers of candidates that are tried
_BEAM = 4  # partial schedules per number of candidates and depth
_MAX_P1_LOSS = 0.1  # partial schedules that lose more P@1 are not extended
_MAP_WEIGHT = 0.1  # MAP decides between schedules with nearly the same P@1


@dataclass(frozen=True, eq=False)
class Trial:
    """A schedule with its quality and cost per question."""

    keeps: tuple[Step, ...]
    """A first stage has depth 0."""
    precision: FloatArray  # (questions,) P@1
    average_precision: FloatArray  # (questions,)
    cost: FloatArray  # (questions,) token-layers, relative to full depth
    agreement: FloatArray  # (questions,) 1 if full depth ranks the same candidate first
    weights: FloatArray = field(repr=False)  # (questions,)

    def mean(self, values: FloatArray) -> float:
        """The weighted mean over the questions."""
        return float(values @ self.weights)

    @property
    def p1(self) -> float:
        """Mean precision at rank 1."""
        return self.mean(self.precision)

    @property
    def map(self) -> float:
        """Mean average precision."""
        return self.mean(self.average_precision)

    @property
    def mean_cost(self) -> float:
        """Mean cost, relative to full depth."""
        return self.mean(self.cost)


def tried_counts(count: int, ratio: float = _RATIO) -> list[int]:
    """The numbers of candidates to try, from `count` down to 1 in roughly constant ratios."""
    counts = [count]
    while counts[-1] > 1:
        counts.append(min(counts[-1] - 1, round(counts[-1] / ratio)))
    return counts


def measure(lists: CandidateLists, keeps: Sequence[Step]) -> Trial:
    """Measure one schedule on these lists."""
    partial = _PartialSchedule.start(lists)
    for step in keeps:
        ranked = partial.ranked(step.depth) if step.depth else partial.ranked_by_first_stage()
        partial = ranked.keep(step.keep)
    return partial.trial()


def search(lists: CandidateLists, *, budget: float, first: bool = False) -> list[Trial]:
    """
    Many good schedules for lists of this length; the first one is full depth.

    A partial schedule is not extended beyond the budget. With `first`, all schedules but full depth
    begin with a cut by the first stage.
    """
    start = _PartialSchedule.start(lists)
    full = start.trial()
    counts = tried_counts(lists.count)[1:]
    beam, trials = _first_stage_cuts(start, full, counts) if first else ([start], [full])
    for depth in lists.depths[:-1]:
        extended: dict[int, list[tuple[_PartialSchedule, Trial]]] = {}
        for partial in beam:
            ranked = partial.ranked(depth)
            for count in (own for own in counts if own < ranked.left):
                next_partial = ranked.keep(count)
                trial = next_partial.trial()
                if trial.p1 < full.p1 - _MAX_P1_LOSS:
                    break  # keeping fewer only loses more
                trials.append(trial)
                if trial.mean(next_partial.spent / lists.full_cost) <= budget:
                    extended.setdefault(count, []).append((next_partial, trial))
        beam += [partial for group in extended.values() for partial in _undominated(group)]
    return trials


def _first_stage_cuts(
    start: _PartialSchedule, full: Trial, counts: Sequence[int]
) -> tuple[list[_PartialSchedule], list[Trial]]:
    """Every cut by the first stage that loses little P@1 and keeps more than one candidate."""
    ranked = start.ranked_by_first_stage()
    beam, trials = [], [full]
    for count in (own for own in counts if own > 1):
        partial = ranked.keep(count)
        trial = partial.trial()
        if trial.p1 < full.p1 - _MAX_P1_LOSS:
            break
        beam.append(partial)
        trials.append(trial)
    return beam, trials


def _undominated(group: Sequence[tuple[_PartialSchedule, Trial]]) -> list[_PartialSchedule]:
    """The most expensive few of those that beat all cheaper ones."""
    best: list[_PartialSchedule] = []
    highest = -1.0
    for partial, trial in sorted(group, key=lambda pair: pair[1].mean_cost):
        quality = trial.p1 + _MAP_WEIGHT * trial.map
        if quality > highest:
            best.append(partial)
            highest = quality
    return best[-_BEAM:]


@dataclass(frozen=True, eq=False)
class _PartialSchedule:
    """A schedule up to some depth, and the state of all lists after it."""

    lists: CandidateLists
    keeps: tuple[Step, ...]
    depth: int
    rows: IntArray  # (questions, left) into the flattened lists, best first by the last classifier
    tokens: FloatArray  # (questions,) of the candidates left
    spent: FloatArray  # (questions,) token-layers
    settled: FloatArray  # (questions,) precision summed over the answers that were dropped

    @classmethod
    def start(cls, lists: CandidateLists) -> _PartialSchedule:
        rows = np.arange(lists.labels.size).reshape(lists.labels.shape)
        zeros = np.zeros(len(lists))
        return cls(lists, (), 0, rows, lists.tokens.sum(axis=1).astype(float), zeros, zeros)

    def ranked(self, depth: int) -> _RankedLists:
        """The candidates left, ranked by the classifier at that depth."""
        ranks = self.lists.ranks[self.lists.depths.index(depth)]
        paid = replace(self, spent=self.spent + self.lists.fixed_cost)
        return paid._ranked_by(ranks, depth, depth - self.depth)

    def ranked_by_first_stage(self) -> _RankedLists:
        """The candidates, ranked by the first stage, at its own cost."""
        assert self.lists.first_stage is not None
        return self._ranked_by(self.lists.first_stage, 0, self.lists.first_stage_layers)

    def _ranked_by(self, ranks: RankArray, depth: int, layers: float) -> _RankedLists:
        order = np.argsort(ranks.ravel().take(self.rows), axis=1, kind="stable")
        rows = np.take_along_axis(self.rows, order, axis=1)
        labels = self.lists.labels.ravel().take(rows)
        tokens = np.cumsum(self.lists.tokens.ravel().take(rows), axis=1)
        partial = replace(self, depth=depth, rows=rows, spent=self.spent + layers * self.tokens)
        return _RankedLists(partial, _precision_from(labels), tokens)

    def trial(self) -> Trial:
        """Measure the schedule with all candidates left going to full depth."""
        lists = self.lists
        # Sorted by keys that contain the labels, the labels come out in full depth's order.
        order = np.sort(lists.full_depth_keys.ravel().take(self.rows), axis=1, kind="stable")
        labels = order & 1
        remaining_cost = (lists.depths[-1] - self.depth) * self.tokens + lists.fixed_cost
        return Trial(
            self.keeps,
            labels[:, 0].astype(float),
            (self.settled + _precision_from(labels)[:, 0]) / lists.answers,
            (self.spent + remaining_cost) / lists.full_cost,
            (order[:, 0] < 2).astype(float),
            lists.weights,
        )


@dataclass(frozen=True, eq=False)
class _RankedLists:
    """A partial schedule whose candidates have just been ranked by the next classifier."""

    partial: _PartialSchedule
    dropped_precision: FloatArray  # (questions, left) summed over answers from each rank on
    tokens: IntArray  # (questions, left) summed up to each rank

    @property
    def left(self) -> int:
        return int(self.tokens.shape[1])

    def keep(self, count: int) -> _PartialSchedule:
        """Keep the best `count` candidates of each list."""
        if count >= self.left:
            return self.partial
        return replace(
            self.partial,
            keeps=(*self.partial.keeps, Step(self.partial.depth, count)),
            rows=self.partial.rows[:, :count],
            tokens=self.tokens[:, count - 1].astype(float),
            settled=self.partial.settled + self.dropped_precision[:, count],
        )


def _precision_from(labels: NDArray[Any]) -> FloatArray:
    """
    Per rank, the sum of the precisions at every answer from that rank on.

    The precision at a dropped answer is final: later classifiers only reorder the candidates above
    the cut, so the number of answers above it does not change.
    """
    precision = labels * np.cumsum(labels, axis=1, dtype=np.float32)
    precision /= np.arange(1, labels.shape[1] + 1, dtype=np.float32)
    return np.asarray(np.cumsum(precision[:, ::-1], axis=1, dtype=np.float64)[:, ::-1])
