"""
Which of many tried schedules to choose, without overfitting the dev sets.

The best of thousands of schedules on a few hundred questions is partly the luckiest. So all
schedules count as good whose P@1, and then whose MAP, is within one standard error of the best,
where the error is that of the paired difference. Of the good ones, the schedule is chosen that most
often ranks the same candidate first as full depth does. Cross-validation measures how well this
rule does on held-out questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .schedule_search import Trial

__all__ = [
    "Choice",
    "HeldOut",
    "TrialTable",
]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
