"""Chances out of logits: a line for each depth, and the threshold below which nothing answers."""

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

_FLATTEST = 1e-3
UNANSWERABLE = 1 / 3
"""Of the questions people ask, supposed to have no answer in the text at hand."""
_NEVER = -1.0

FloatArray = NDArray[np.float64]


def calibrate(tables: Sequence[ScoreTable]) -> dict[int, LogitCalibration]:
    """
    Platt's line for each depth, over the questions' own candidates.

    Not over what padding brought: easy negatives by the hundred would say little about the chances
    of a candidate at the top, which are the ones that anybody reads.
    """
    own = [~table.added for table in tables]
    labels = np.concatenate([table.labels[mask] for table, mask in zip(tables, own, strict=True)])
    lines = {}
    for row, depth in enumerate(tables[0].depths):
        logits = [table.scores[row, mask] for table, mask in zip(tables, own, strict=True)]
        fitted = PlattScaling.fit(np.concatenate(logits), labels)
        lines[depth] = LogitCalibration(fitted.scale, fitted.shift)
        if fitted.scale < _FLATTEST:  # a classifier that knows nothing gives everybody's chance
            lines[depth] = LogitCalibration(
                _FLATTEST, float(np.log(labels.mean() / (1 - labels.mean())))
            )
    return lines


def no_answer_threshold(tables: Sequence[ScoreTable], line: LogitCalibration) -> float:
    """
    The chance at full depth below which nothing is given as the answer.

    It treats most questions right where one in three has no answer: with the right sentence, or by
    saying that there is none. Every question counts twice, with its answers and without them, and
    every table the same. (The F1 of abstaining would be highest at a threshold that keeps a third
    of the right sentences back.)
    """
    treated = [_treated(table, line) for table in tables]
    chances = np.concatenate([chance for pair in treated for chance in pair])
    if not len(chances):
        raise InputError(
            "Expected questions that have an answer and another candidate, got none. Take a "
            "larger set."
        )
    values = np.unique(np.maximum(chances, 0.0))
    right = np.zeros(len(values))
    for given, silent in treated:
        # Given where the chance is at least the threshold, silent where it is below.
        right += (1 - UNANSWERABLE) * (1 - _share_below(given, values))
        right += UNANSWERABLE * _share_below(silent, values)
    return min(1.0, float(values[np.argmax(right)]))


def _treated(table: ScoreTable, line: LogitCalibration) -> tuple[FloatArray, FloatArray]:
    """
    For questions that have both kinds of candidates, the best candidate's chance.

    First with all of them, -1 where it is a wrong one, which no threshold makes right; then with
    the answers taken out.
    """
    chances = np.asarray(line(table.scores[-1]), np.float64)
    given, silent = [], []
    for start, size in zip(table.starts.tolist(), table.sizes.tolist(), strict=True):
        labels, own = table.labels[start : start + size], chances[start : start + size]
        if labels.any() and not labels.all():
            given.append(own.max() if labels[own.argmax()] else _NEVER)
            silent.append(own[~labels].max())
    return np.array(given), np.array(silent)


def _share_below(chances: FloatArray, values: FloatArray) -> FloatArray:
    """For each value, the share of the chances that lie below it."""
    return np.searchsorted(np.sort(chances), values) / max(1, len(chances))
