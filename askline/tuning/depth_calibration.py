"""Calibration: probabilities from logits at each depth, and the no-answer threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..evaluation.calibration import PlattScaling
from ..rankers.probability import LogitCalibration
from .score_tables import ScoreTable

__all__ = [
    "calibrate",
    "no_answer_threshold",
]

_MIN_SCALE = 1e-3
UNANSWERABLE = 1 / 3
"""The assumed share of questions that have no answer among their candidates."""
_WRONG = -1.0  # below every threshold

FloatArray = NDArray[np.float64]


def calibrate(tables: Sequence[ScoreTable]) -> dict[int, LogitCalibration]:
    """
    Platt scaling per depth, fitted on the questions' own candidates.

    Candidates added by padding are left out: hundreds of easy negatives would say little about the
    probabilities at the top of a list, which are the ones that users see.
    """
    own = [~table.added for table in tables]
    labels = np.concatenate([table.labels[mask] for table, mask in zip(tables, own, strict=True)])
    calibration = {}
    for row, depth in enumerate(tables[0].depths):
        logits = [table.scores[row, mask] for table, mask in zip(tables, own, strict=True)]
        fitted = PlattScaling.fit(np.concatenate(logits), labels)
        calibration[depth] = LogitCalibration(fitted.scale, fitted.shift)
        if fitted.scale < _MIN_SCALE:  # a useless classifier gives every candidate the base rate
            base_rate = float(np.log(labels.mean() / (1 - labels.mean())))
            calibration[depth] = LogitCalibration(_MIN_SCALE, base_rate)
    return calibration


def no_answer_threshold(tables: Sequence[ScoreTable], calibration: LogitCalibration) -> float:
    """
    The probability at full depth below which no answer is given.

    It maximizes the share of questions that are handled correctly, with the right sentence or with
    no answer, if one question in three is unanswerable. Every question counts twice, with its
    answers and without them, and all tables have the same weight. (The threshold with the highest
    F1 of abstaining would suppress a third of the right sentences.)
    """
    by_table = [_best_probabilities(table, calibration) for table in tables]
    probabilities = np.concatenate([own for pair in by_table for own in pair])
    if not len(probabilities):
        raise InputError(
            "Expected questions that have an answer and another candidate, got none. Use a "
            "larger set."
        )
    thresholds = np.unique(np.maximum(probabilities, 0.0))
    correct = np.zeros(len(thresholds))
    for answerable, unanswerable in by_table:
        # An answer is given if the probability is at least the threshold.
        correct += (1 - UNANSWERABLE) * (1 - _share_below(answerable, thresholds))
        correct += UNANSWERABLE * _share_below(unanswerable, thresholds)
    return min(1.0, float(thresholds[np.argmax(correct)]))


def _best_probabilities(
    table: ScoreTable, calibration: LogitCalibration
) -> tuple[FloatArray, FloatArray]:
    """
    The probability of the best candidate, for questions with answers and other candidates.

    First with all candidates, -1 if the best one is wrong, which no threshold can correct; then
    with the answers removed.
    """
    probabilities = np.asarray(calibration(table.scores[-1]), np.float64)
    answerable, unanswerable = [], []
    for start, size in zip(table.starts.tolist(), table.sizes.tolist(), strict=True):
        labels, own = table.labels[start : start + size], probabilities[start : start + size]
        if labels.any() and not labels.all():
            answerable.append(own.max() if labels[own.argmax()] else _WRONG)
            unanswerable.append(own[~labels].max())
    return np.array(answerable), np.array(unanswerable)


def _share_below(probabilities: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Per threshold, the share of probabilities below it."""
    return np.searchsorted(np.sort(probabilities), thresholds) / max(1, len(probabilities))
