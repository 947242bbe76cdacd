"""
Scores from 0 to 1 that fall from first to last, which is what reranking clients expect.

A ranker's own scores compare within a stage alone. What an earlier stage dropped stands behind what
a later one kept, so it gets no more than the least score kept: its own chance where that is lower,
and a share of it where all that is known is a score.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import groupby

from ..types import Hit, Ranking

__all__ = [
    "chance_stages",
    "relevance",
    "sigmoid",
]


def chance_stages(ranking: Ranking) -> set[int]:
    """The stages whose scores are chances."""
    return {at for at, stage in enumerate(ranking.stages) if stage.calibrated}


def relevance(hits: Sequence[Hit], chances: Collection[int]) -> list[float]:
    """
    One number from 0 to 1 for each hit, never rising.

    Scores of the stages in `chances` are taken as they are, others go through the logistic
    function, so that they stay comparable between requests.
    """
    values: list[float] = []
    lowest = 1.0
    for stage, group in groupby(hits, key=lambda hit: hit.stage):
        floor = lowest
        for hit in group:
            own = _bounded(hit.score) if stage in chances else floor * sigmoid(hit.score)
            lowest = min(lowest, own)
            values.append(lowest)
    return values


def sigmoid(score: float) -> float:
    """The logistic function, without overflow; a score that is no number counts as the worst."""
    if math.isnan(score):
        return 0.0
    if score >= 0:
        return 1 / (1 + math.exp(-score))
    return math.exp(max(score, -700.0)) / (1 + math.exp(max(score, -700.0)))


def _bounded(score: float) -> float:
    return 0.0 if math.isnan(score) else min(max(score, 0.0), 1.0)
