"""
Scores as probabilities, how far they can be trusted, and when to give no answer at all.

A calibrator is fitted on dev and used on anything: `Temperature` keeps one straight line through
the logits, `Isotonic` any rising staircase. Neither changes an order (a staircase may make ties),
so no ranking measure is touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .measures import FloatArray

__all__ = [
    "Abstention",
    "IsotonicRegression",
    "PlattScaling",
    "auroc",
    "choose_threshold",
    "expected_calibration_error",
]

_NEWTON_STEPS = 100


@dataclass(frozen=True, slots=True)
class PlattScaling:
    """`sigmoid(scale * score + shift)`: Platt's scaling, of which temperature is 1 / scale."""

    scale: float = 1.0
    shift: float = 0.0

    @classmethod
    def fit(cls, scores: ArrayLike, labels: ArrayLike) -> PlattScaling:
        """
        The maximum-likelihood line, by Newton's method.

        Labels are smoothed as Platt does, so that scores which separate them perfectly still give
        a finite scale.
        """
        score, label = _checked(scores, labels)
        positives, negatives = label.sum(), (~label).sum()
        target = np.where(label, (positives + 1) / (positives + 2), 1 / (negatives + 2))
        columns = np.stack([score, np.ones_like(score)])  # (2, n)
        weights = np.zeros(2)
        loss = _log_loss(weights @ columns, target)
        for _ in range(_NEWTON_STEPS):
            chance = _sigmoid(weights @ columns)
            curvature = (columns * (chance * (1 - chance))) @ columns.T + 1e-9 * np.eye(2)
            step = np.linalg.solve(curvature, columns @ (chance - target))
            # The loss is convex, so a step that raises it went too far.
            while (after := _log_loss((weights - step) @ columns, target)) > loss:
                step = step / 2
            gain, loss, weights = loss - after, after, weights - step
            if gain < 1e-12:
                break
        return cls(float(weights[0]), float(weights[1]))

    def __call__(self, scores: ArrayLike) -> FloatArray:
        return _sigmoid(self.scale * np.asarray(scores, float) + self.shift)


@dataclass(frozen=True, slots=True, eq=False)
class IsotonicRegression:
    """A rising staircase through the dev scores, with straight lines between its steps."""

    scores: FloatArray
    chances: FloatArray

    @classmethod
    def fit(cls, scores: ArrayLike, labels: ArrayLike) -> IsotonicRegression:
        """The least-squares rising fit (pool adjacent violators); equal scores are one point."""
        score, label = _checked(scores, labels)
        points, place = np.unique(score, return_inverse=True)
        weight = np.bincount(place).astype(float)
        means = np.bincount(place, label) / weight
        blocks: list[tuple[float, float, int]] = []  # mean, weight, points in it
        for mean, mass in zip(means.tolist(), weight.tolist(), strict=True):
            count = 1
            while blocks and blocks[-1][0] >= mean:
                before, before_mass, before_count = blocks.pop()
                mean = (mean * mass + before * before_mass) / (mass + before_mass)
                mass, count = mass + before_mass, count + before_count
            blocks.append((mean, mass, count))
        return cls(
            points, np.repeat([block[0] for block in blocks], [block[2] for block in blocks])
        )

    def __call__(self, scores: ArrayLike) -> FloatArray:
        found: FloatArray = np.interp(np.asarray(scores, float), self.scores, self.chances)
        return found


@dataclass(frozen=True, slots=True)
class Abstention:
    """A threshold, and what giving no answer below it comes to on a set."""

    threshold: float
    precision: float
    """Of the questions left without an answer, the share that has none."""
    recall: float
    """Of the questions that have no answer, the share left without one."""

    @classmethod
    def at(cls, threshold: float, best_scores: ArrayLike, answerable: ArrayLike) -> Abstention:
        """With a threshold that is given. `best_scores` has each question's first candidate's."""
        score, answered = _checked(best_scores, answerable)
        silent = score < threshold
        rightly = int((silent & ~answered).sum())
        precision = rightly / max(1, int(silent.sum()))
        return cls(float(threshold), precision, rightly / int((~answered).sum()))

    @property
    def f1(self) -> float:
        """Of abstaining, as a fraction."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def choose_threshold(best_scores: ArrayLike, answerable: ArrayLike) -> Abstention:
    """
    The threshold with the highest F1 of abstaining, the lowest of equals.

    `best_scores` has the score of each question's first candidate; one below the threshold is
    answered with nothing.
    """
    score, answered = _checked(best_scores, answerable)
    order = np.argsort(score, kind="stable")
    silent = np.cumsum(~answered[order])  # unanswerable questions among the lowest k
    low = score[order]
    ends = np.flatnonzero(np.append(low[1:] > low[:-1], True))  # equal scores fall together
    counts = ends + 1
    f1 = 2 * silent[ends] / (counts + silent[-1])
    best = int(np.argmax(f1))
    last = ends[best]
    threshold = np.nextafter(low[last], np.inf) if last + 1 == len(low) else low[last + 1]
    return Abstention.at(threshold, score, answered)


def auroc(scores: ArrayLike, labels: ArrayLike) -> float:
    """The chance that a positive outscores a negative, ties counting half (Mann and Whitney)."""
    score, label = _checked(scores, labels)
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]  # the mean rank of equal scores
    positives, negatives = int(label.sum()), int((~label).sum())
    above = ranks[label].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, *, bins: int = 15
) -> float:
    """
    The mean gap between what was said and what came true, over bins of equal width.

    A fraction, 0 to 1; each bin counts with its share of the pairs. Bins are open on the left, and
    the first takes 0 as well.
    """
    chance = np.asarray(probabilities, float)
    label = np.asarray(labels, bool)
    if chance.shape != label.shape or chance.ndim != 1 or not len(chance):
        raise InputError(
            f"Expected as many probabilities as labels, and at least one, got {chance.shape} and "
            f"{label.shape}."
        )
    if not ((chance >= 0) & (chance <= 1)).all():
        raise InputError("Probabilities must be from 0 to 1. Calibrate the scores first.")
    if bins < 1:
        raise InputError(f"bins must be at least 1, got {bins}.")
    place = np.clip(np.ceil(chance * bins).astype(int) - 1, 0, bins - 1)
    gap = np.bincount(place, chance, bins) - np.bincount(place, label, bins)
    return float(np.abs(gap).sum() / len(chance))


def _sigmoid(logits: FloatArray) -> FloatArray:
    # Through tanh, which neither overflows nor warns.
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


def _log_loss(logits: FloatArray, target: FloatArray) -> float:
    return float(np.mean(np.logaddexp(0, logits) - target * logits))


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    score, label = np.asarray(scores, float), np.asarray(labels, bool)
    if score.shape != label.shape or score.ndim != 1:
        raise InputError(
            f"Expected one label for each score, got {score.shape} scores and {label.shape} labels."
        )
    if not np.isfinite(score).all():
        raise InputError("Scores must be finite numbers.")
    if label.all() or not label.any():
        raise InputError("Expected labels of both kinds, got one kind only. Take a larger set.")
    return score, label
