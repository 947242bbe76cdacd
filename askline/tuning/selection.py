"""
Which of many tried schedules to take, without falling for luck.

The best of thousands on some hundred questions is partly the luckiest. So all count as good that
are not worse than the best by more than one standard error of their difference, question by
question, in P@1 and then in MAP; of the good ones, that is taken which most often has the same
candidate first as full depth. How well such a rule does on questions it has not seen is measured by
cross-validation.
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
    """What the rule gives on questions that it did not choose by; differences to full depth."""

    p1: float
    p1_error: float
    map: float
    price: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The schedule taken."""

    trial: Trial
    full: Trial
    held_out: HeldOut


@dataclass(frozen=True, eq=False)
class TrialTable:
    """All trials on the same lists, side by side; the first is full depth."""

    trials: Sequence[Trial]
    precision: FloatArray  # (trials, questions)
    average_precision: FloatArray
    cost: FloatArray
    agreement: FloatArray
    weights: FloatArray  # (questions,)
    folds: IntArray  # (questions,)
    sets: IntArray  # (questions,)

    @classmethod
    def of(cls, trials: Sequence[Trial], folds: IntArray, sets: IntArray) -> TrialTable:
        """Stack them."""
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

    def front(self) -> list[Trial]:
        """Cheapest first, each better than all that are cheaper."""
        found: list[Trial] = []
        for trial in sorted(self.trials, key=lambda own: (own.price, -own.p1, -own.map)):
            if not found or (trial.p1, trial.map) > (found[-1].p1, found[-1].map):
                found.append(trial)
        return found

    def best(
        self,
        budget: float,
        *,
        loss: float = 1.0,
        map_loss: float = 1.0,
        among: BoolArray | None = None,
    ) -> Choice:
        """
        The best within the budget.

        With limits, only those count that surely, by one standard error, lose no more P@1 than
        `loss` and no more MAP than `map_loss`, and that on no single set lose more MAP than it; the
        budget grows to the cheapest of them. Where none is sure, they are those that lose least;
        where all are dearer, it is the cheapest.
        """
        return self._choice(lambda view: view.best(budget, loss, map_loss), among)

    def cheapest(self, loss: float, *, among: BoolArray) -> Choice:
        """
        The cheapest that surely, by one standard error, loses no more than `loss`.

        Lost are questions that full depth gets right. What is won elsewhere does not make up for
        them: a filter that keeps out what full depth falls for does so on some sets and not on
        others. Where none is sure, it is the one that loses least.
        """
        return self._choice(lambda view: view.cheapest(loss), among)

    def _choice(self, rule: Callable[[_View], int], among: BoolArray | None) -> Choice:
        allowed = np.ones(len(self.trials), bool) if among is None else among
        taken = np.zeros(len(self.folds), np.int64)
        for fold in np.unique(self.folds):
            seen = np.where(self.folds == fold, 0.0, self.weights)
            taken[self.folds == fold] = rule(_View(self, allowed, seen / seen.sum()))
        place = rule(_View(self, allowed, self.weights))
        return Choice(self.trials[place], self.trials[0], self._held_out(taken))

    def _held_out(self, taken: IntArray) -> HeldOut:
        column, weights = np.arange(len(taken)), self.weights
        gain = self.precision[taken, column] - self.precision[0]
        ap_gain = self.average_precision[taken, column] - self.average_precision[0]
        return HeldOut(
            float(gain @ weights),
            float(_errors(gain[None], weights)[0]),
            float(ap_gain @ weights),
            float(self.cost[taken, column] @ weights),
        )


@dataclass(frozen=True, eq=False)
class _View:
    """The trials as the questions see them that have a weight."""

    field: TrialTable
    allowed: BoolArray
    weights: FloatArray

    def best(self, budget: float, loss: float, map_loss: float) -> int:
        field, weights, allowed = self.field, self.weights, self.allowed
        price = field.cost @ weights
        good = allowed
        for values, most in ((field.precision, loss), (field.average_precision, map_loss)):
            if most < 1:
                lost = (values[0] - values) @ weights + _errors(values[0] - values, weights)
                good = good & (lost <= max(most, lost[good].min()) + _ROUNDING)
        if map_loss < 1:
            lost = self._most_lost(field.average_precision)
            good = good & (lost <= max(map_loss, lost[good].min()) + _ROUNDING)
        within = good & (price <= max(budget, price[good].min()) + _ROUNDING)
        if not within.any():
            return int(np.argmin(np.where(allowed, price, np.inf)))
        for values in (field.precision, field.average_precision):
            mean = np.where(within, values @ weights, -np.inf)
            best = int(np.lexsort((price, -mean))[0])
            error = _errors(values - values[best], weights)
            within = within & (mean >= mean[best] - error - _ROUNDING)
        agreement = np.where(within, field.agreement @ weights, -np.inf)
        return int(np.lexsort((price, -np.round(agreement, 9)))[0])

    def _most_lost(self, values: FloatArray) -> FloatArray:
        """Of each trial, on the set that loses most: large easy ones must not hide a small one."""
        lost = values[0] - values
        shares = (np.where(self.field.sets == each, self.weights, 0.0) for each in self._seen)
        by_set = [lost @ (share / share.sum()) for share in shares]
        return np.asarray(np.max(by_set, axis=0))

    @property
    def _seen(self) -> IntArray:
        return np.unique(self.field.sets[self.weights > 0])

    def cheapest(self, loss: float) -> int:
        field, weights = self.field, self.weights
        lost = np.maximum(0.0, field.precision[0] - field.precision)
        surely = np.where(self.allowed, lost @ weights + _errors(lost, weights), np.inf)
        within = surely <= max(loss, surely.min()) + _ROUNDING
        return int(np.argmin(np.where(within, field.cost @ weights, np.inf)))


def _errors(apart: FloatArray, weights: FloatArray) -> FloatArray:
    """The standard error of each row's weighted mean."""
    spread = (apart - (apart @ weights)[:, None]) ** 2
    return np.asarray(np.sqrt(spread @ weights**2))
