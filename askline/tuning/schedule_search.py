"""
The search for drop schedules on candidate lists whose scores are known, and the choice among them.

A schedule says after which layers candidates are dropped and how many are kept. The search goes
from classifier to classifier and extends each partial schedule by every number of candidates that
the next classifier might keep. Of the partial schedules that keep the same number at the same
depth, only the best few are extended: those that beat all cheaper ones (a beam search). A partial
schedule is measured as if all candidates that it keeps went straight to full depth.

The best of thousands of schedules on a few hundred questions is partly the luckiest. So all
schedules count as good whose P@1, and then whose MAP, is within one standard error of the best,
where the error is that of the paired difference. Of the good ones, the schedule is chosen that most
often ranks the same candidate first as full depth does. Cross-validation measures how well this
rule does on held-out questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rankers.schedule import Step
from .score_tables import CandidateLists, RankArray

__all__ = ["Choice", "HeldOut", "Trial", "TrialTable", "measure", "search", "tried_counts"]

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


BoolArray = NDArray[np.bool_]

_ROUNDING = 1e-9  # equal sums may differ in their last digit


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The rule's result on held-out questions; differences from full depth."""

    p1: float
    p1_error: float
    map: float
    cost: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen schedule, and full depth for comparison."""

    trial: Trial
    full: Trial
    held_out: HeldOut


@dataclass(frozen=True, eq=False)
class TrialTable:
    """All trials on the same lists; the first one is full depth."""

    trials: Sequence[Trial]
    precision: FloatArray  # (trials, questions)
    average_precision: FloatArray  # (trials, questions)
    cost: FloatArray  # (trials, questions)
    agreement: FloatArray  # (trials, questions)
    weights: FloatArray  # (questions,)
    folds: IntArray  # (questions,)
    sets: IntArray  # (questions,)

    @classmethod
    def of(cls, trials: Sequence[Trial], folds: IntArray, sets: IntArray) -> TrialTable:
        """Stack the trials' arrays."""
        return cls(
            trials,
            np.stack([trial.precision for trial in trials]),
            np.stack([trial.average_precision for trial in trials]),
            np.stack([trial.cost for trial in trials]),
            np.stack([trial.agreement for trial in trials]),
            trials[0].weights,
            folds,
            sets,
        )

    def pareto_front(self) -> list[Trial]:
        """The trials that are better than all cheaper ones, cheapest first."""
        front: list[Trial] = []
        for trial in sorted(self.trials, key=lambda own: (own.mean_cost, -own.p1, -own.map)):
            if not front or (trial.p1, trial.map) > (front[-1].p1, front[-1].map):
                front.append(trial)
        return front

    def best(
        self,
        budget: float,
        *,
        loss: float = 1.0,
        map_loss: float = 1.0,
        among: BoolArray | None = None,
    ) -> Choice:
        """
        Choose the best schedule within the budget.

        With limits below 1, only schedules count that, by one standard error, lose at most `loss`
        of P@1 and `map_loss` of MAP, and at most `map_loss` of MAP on each single set. The budget
        grows to the cheapest of them. If no schedule satisfies a limit, those with the least loss
        count; if all are too expensive, the cheapest is chosen.
        """
        return self._choose(lambda weighted: weighted.best(budget, loss, map_loss), among)

    def cheapest(self, loss: float, *, among: BoolArray) -> Choice:
        """
        Choose the cheapest schedule that, by one standard error, loses at most `loss`.

        The loss counts questions that full depth answers correctly; other questions that are won do
        not make up for them, because a first stage that removes what full depth falls for does so
        on some sets and not on others. If no schedule is good enough, the one with the least loss
        is chosen.
        """
        return self._choose(lambda weighted: weighted.cheapest(loss), among)

    def _choose(self, rule: Callable[[_WeightedTrials], int], among: BoolArray | None) -> Choice:
        allowed = np.ones(len(self.trials), bool) if among is None else among
        chosen = np.zeros(len(self.folds), np.int64)  # per question, by the other folds
        for fold in np.unique(self.folds):
            weights = np.where(self.folds == fold, 0.0, self.weights)
            own = _WeightedTrials(self, allowed, weights / weights.sum())
            chosen[self.folds == fold] = rule(own)
        final = rule(_WeightedTrials(self, allowed, self.weights))
        return Choice(self.trials[final], self.trials[0], self._held_out(chosen))

    def _held_out(self, chosen: IntArray) -> HeldOut:
        questions, weights = np.arange(len(chosen)), self.weights
        gain = self.precision[chosen, questions] - self.precision[0]
        ap_gain = self.average_precision[chosen, questions] - self.average_precision[0]
        return HeldOut(
            float(gain @ weights),
            float(_standard_errors(gain[None], weights)[0]),
            float(ap_gain @ weights),
            float(self.cost[chosen, questions] @ weights),
        )


@dataclass(frozen=True, eq=False)
class _WeightedTrials:
    """The trials measured on the questions that have a weight. Methods return a trial's number."""

    table: TrialTable
    allowed: BoolArray
    weights: FloatArray

    def best(self, budget: float, loss: float, map_loss: float) -> int:
        table, weights, allowed = self.table, self.weights, self.allowed
        cost = table.cost @ weights
        good = allowed
        for values, limit in ((table.precision, loss), (table.average_precision, map_loss)):
            if limit < 1:
                lost = values[0] - values
                surely_lost = lost @ weights + _standard_errors(lost, weights)
                good = good & (surely_lost <= max(limit, surely_lost[good].min()) + _ROUNDING)
        if map_loss < 1:
            lost = self._largest_loss_of_a_set(table.average_precision)
            good = good & (lost <= max(map_loss, lost[good].min()) + _ROUNDING)
        within = good & (cost <= max(budget, cost[good].min()) + _ROUNDING)
        if not within.any():
            return int(np.argmin(np.where(allowed, cost, np.inf)))
        for values in (table.precision, table.average_precision):
            mean = np.where(within, values @ weights, -np.inf)
            best = int(np.lexsort((cost, -mean))[0])
            error = _standard_errors(values - values[best], weights)
            within = within & (mean >= mean[best] - error - _ROUNDING)
        agreement = np.where(within, table.agreement @ weights, -np.inf)
        return int(np.lexsort((cost, -np.round(agreement, 9)))[0])

    def cheapest(self, loss: float) -> int:
        table, weights = self.table, self.weights
        lost = np.maximum(0.0, table.precision[0] - table.precision)
        surely_lost = lost @ weights + _standard_errors(lost, weights)
        surely_lost = np.where(self.allowed, surely_lost, np.inf)
        within = surely_lost <= max(loss, surely_lost.min()) + _ROUNDING
        return int(np.argmin(np.where(within, table.cost @ weights, np.inf)))

    def _largest_loss_of_a_set(self, values: FloatArray) -> FloatArray:
        """(trials,): large easy sets must not hide the loss on a small one."""
        lost = values[0] - values
        sets = np.unique(self.table.sets[self.weights > 0])
        shares = (np.where(self.table.sets == each, self.weights, 0.0) for each in sets)
        by_set = [lost @ (share / share.sum()) for share in shares]
        return np.asarray(np.max(by_set, axis=0))


def _standard_errors(differences: FloatArray, weights: FloatArray) -> FloatArray:
    """The standard error of each row's weighted mean."""
    squares = (differences - (differences @ weights)[:, None]) ** 2
    return np.asarray(np.sqrt(squares @ weights**2))
