"""
Calibration: turn scores into probabilities, measure them, and choose when to give no answer.

A calibrator is fitted on a dev set: `PlattScaling` fits a line to the logits,
`IsotonicRegression` any non-decreasing function. Neither reverses an order (isotonic regression may
create ties), so ranking measures stay the same.
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
    "ReliabilityBin",
    "auroc",
    "choose_threshold",
    "expected_calibration_error",
    "reliability_bins",
]

_NEWTON_STEPS = 100


@dataclass(frozen=True, slots=True)
class PlattScaling:
    """`sigmoid(scale * score + shift)`. The temperature is 1 / scale."""

    scale: float = 1.0
    shift: float = 0.0

    @classmethod
    def fit(cls, scores: ArrayLike, labels: ArrayLike) -> PlattScaling:
        """
        Fit by maximum likelihood with Newton's method.

        Labels are smoothed as in Platt (1999), so that the scale stays finite even if the scores
        separate the labels perfectly.
        """
        score, label = _checked(scores, labels)
        positives, negatives = label.sum(), (~label).sum()
        target = np.where(label, (positives + 1) / (positives + 2), 1 / (negatives + 2))
        columns = np.stack([score, np.ones_like(score)])  # (2, n)
        weights = np.zeros(2)
        loss = _log_loss(weights @ columns, target)
        for _ in range(_NEWTON_STEPS):
            probability = _sigmoid(weights @ columns)
            hessian = (columns * (probability * (1 - probability))) @ columns.T + 1e-9 * np.eye(2)
            step = np.linalg.solve(hessian, columns @ (probability - target))
            # The loss is convex, so a step that increases it is too long.
            while (new_loss := _log_loss((weights - step) @ columns, target)) > loss:
                step = step / 2
            gain, loss, weights = loss - new_loss, new_loss, weights - step
            if gain < 1e-12:
                break
        return cls(float(weights[0]), float(weights[1]))

    def __call__(self, scores: ArrayLike) -> FloatArray:
        return _sigmoid(self.scale * np.asarray(scores, float) + self.shift)


@dataclass(frozen=True, slots=True, eq=False)
class IsotonicRegression:
    """A non-decreasing function of the score, linear between the scores it was fitted on."""

    scores: FloatArray
    probabilities: FloatArray

    @classmethod
    def fit(cls, scores: ArrayLike, labels: ArrayLike) -> IsotonicRegression:
        """Fit by least squares (pool adjacent violators); equal scores are one point."""
        score, label = _checked(scores, labels)
        points, position = np.unique(score, return_inverse=True)
        weights = np.bincount(position).astype(float)
        means = np.bincount(position, label) / weights
        blocks: list[tuple[float, float, int]] = []  # mean, weight, number of points
        for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
            count = 1
            while blocks and blocks[-1][0] >= mean:
                last_mean, last_weight, last_count = blocks.pop()
                mean = (mean * weight + last_mean * last_weight) / (weight + last_weight)
                weight, count = weight + last_weight, count + last_count
            blocks.append((mean, weight, count))
        return cls(
            points, np.repeat([block[0] for block in blocks], [block[2] for block in blocks])
        )

    def __call__(self, scores: ArrayLike) -> FloatArray:
        found: FloatArray = np.interp(np.asarray(scores, float), self.scores, self.probabilities)
        return found


@dataclass(frozen=True, slots=True)
class Abstention:
    """Precision and recall of giving no answer if the best score is below a threshold."""

    threshold: float
    precision: float
    """The share of unanswerable questions among those that got no answer."""
    recall: float
    """The share of the unanswerable questions that got no answer."""

    @classmethod
    def at(cls, threshold: float, best_scores: ArrayLike, answerable: ArrayLike) -> Abstention:
        """Measure a threshold. `best_scores` has the score of each question's first candidate."""
        score, has_answer = _checked(best_scores, answerable)
        abstained = score < threshold
        correct = int((abstained & ~has_answer).sum())
        precision = correct / max(1, int(abstained.sum()))
        return cls(float(threshold), precision, correct / int((~has_answer).sum()))

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, as a fraction."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def choose_threshold(best_scores: ArrayLike, answerable: ArrayLike) -> Abstention:
    """
    The threshold with the highest F1 of abstaining; of equal ones, the lowest.

    `best_scores` has the score of each question's first candidate. A question whose best score is
    below the threshold gets no answer.
    """
    score, has_answer = _checked(best_scores, answerable)
    order = np.argsort(score, kind="stable")
    correct = np.cumsum(~has_answer[order])  # unanswerable questions among the k lowest scores
    ordered = score[order]
    # Equal scores are on the same side of every threshold.
    ends = np.flatnonzero(np.append(ordered[1:] > ordered[:-1], True))
    abstained = ends + 1
    f1 = 2 * correct[ends] / (abstained + correct[-1])
    last = ends[int(np.argmax(f1))]
    is_highest = last + 1 == len(ordered)
    threshold = np.nextafter(ordered[last], np.inf) if is_highest else ordered[last + 1]
    return Abstention.at(threshold, score, has_answer)


def auroc(scores: ArrayLike, labels: ArrayLike) -> float:
    """The probability that a positive outscores a negative; ties count half (Mann-Whitney U)."""
    score, label = _checked(scores, labels)
    _, position, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[position]  # equal scores get their mean rank
    positives, negatives = int(label.sum()), int((~label).sum())
    above = ranks[label].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The pairs whose predicted probability is in one range."""

    count: int
    """The number of pairs, at least 1."""
    probability: float
    """The mean of their predicted probabilities."""
    frequency: float
    """The share of them that are positive; equal to `probability` if perfectly calibrated."""


def reliability_bins(
    probabilities: ArrayLike, labels: ArrayLike, *, bins: int = 15
) -> list[ReliabilityBin]:
    """
    Compare predicted probabilities with observed frequencies, over bins of equal width.

    A bin includes its upper bound but not its lower one, except that the first bin includes 0.
    Empty bins are left out.
    """
    probability = np.asarray(probabilities, float)
    label = _as_labels(labels)
    if probability.shape != label.shape or probability.ndim != 1 or not len(probability):
        raise InputError(
            "Expected as many probabilities as labels, and at least one, got shapes "
            f"{probability.shape} and {label.shape}."
        )
    if not ((probability >= 0) & (probability <= 1)).all():
        raise InputError("Probabilities must be from 0 to 1. Calibrate the scores first.")
    if bins < 1:
        raise InputError(f"`bins` must be at least 1, got {bins}.")
    bin_index = np.clip(np.ceil(probability * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(bin_index, minlength=bins)
    sums = np.bincount(bin_index, probability, bins)
    positives = np.bincount(bin_index, label, bins)
    return [
        ReliabilityBin(int(count), float(total / count), float(positive / count))
        for count, total, positive in zip(counts, sums, positives, strict=True)
        if count
    ]


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, *, bins: int = 15
) -> float:
    """
    The mean gap between predicted probability and observed frequency, over `reliability_bins`.

    A fraction, 0 to 1; each bin is weighted by its share of the pairs.
    """
    found = reliability_bins(probabilities, labels, bins=bins)
    gaps = sum(own.count * abs(own.probability - own.frequency) for own in found)
    return gaps / sum(own.count for own in found)


def _sigmoid(logits: FloatArray) -> FloatArray:
    # By tanh, which neither overflows nor warns.
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


def _log_loss(logits: FloatArray, target: FloatArray) -> float:
    return float(np.mean(np.logaddexp(0, logits) - target * logits))


def _as_labels(labels: ArrayLike) -> NDArray[np.bool_]:
    """InputError for other values than 0 and 1: other libraries take labels before scores."""
    given = np.asarray(labels)
    label = given.astype(bool)
    if not np.array_equal(given, label):
        raise InputError("Labels must be 0 or 1. They come after the scores.")
    return label


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    score, label = np.asarray(scores, float), _as_labels(labels)
    if score.shape != label.shape or score.ndim != 1:
        raise InputError(
            f"Expected one label per score, got shapes {score.shape} and {label.shape}."
        )
    if not np.isfinite(score).all():
        raise InputError("Scores must be finite numbers.")
    if label.all() or not label.any():
        raise InputError(
            "Expected positive and negative labels, got one kind only. Use a larger set."
        )
    return score, label
