"""Chances out of logits: a line for each depth, and the threshold below which nothing answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..evaluation.calibration import Temperature, choose_threshold
from ..rankers.calibration import Line
from .tables import ScoreTable

__all__ = ["calibrate", "no_answer_threshold"]

_FLATTEST = 1e-3


def calibrate(tables: Sequence[ScoreTable]) -> dict[int, Line]:
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
        fitted = Temperature.fit(np.concatenate(logits), labels)
        lines[depth] = Line(fitted.scale, fitted.shift)
        if fitted.scale < _FLATTEST:  # a classifier that knows nothing gives everybody's chance
            lines[depth] = Line(_FLATTEST, float(np.log(labels.mean() / (1 - labels.mean()))))
    return lines


def no_answer_threshold(tables: Sequence[ScoreTable], line: Line) -> float:
    """
    The chance at full depth below which giving no answer is best by F1.

    Every question counts twice, once with its answers and once without them.
    """
    best: list[float] = []
    answerable: list[bool] = []
    for table in tables:
        logits = table.scores[-1]
        for start, size in zip(table.starts.tolist(), table.sizes.tolist(), strict=True):
            labels = table.labels[start : start + size]
            scores = logits[start : start + size]
            for mask, has_answer in ((np.ones(size, bool), bool(labels.any())), (~labels, False)):
                if mask.any():
                    best.append(float(scores[mask].max()))
                    answerable.append(has_answer)
    threshold = choose_threshold(line(best), answerable).threshold
    return min(1.0, threshold)
