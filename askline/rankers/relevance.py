"""
Relevance scores: one number from 0 to 1 per hit, in descending order.

Clients of rerankers expect such scores. The scores of a ranker compare within one stage only, and
documents dropped by an early stage follow those that a later stage kept. So a dropped document gets
at most the lowest score kept: its own probability if that is lower, or a fraction of it if the
stage is not calibrated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import groupby

from ..types import Hit, Ranking

__all__ = ["calibrated_stages", "ranking_relevance", "relevance_scores", "sigmoid"]


def ranking_relevance(ranking: Ranking) -> list[float]:
    """Return the relevance score of each hit of a ranking."""
    return relevance_scores(ranking.hits, calibrated_stages(ranking))


def calibrated_stages(ranking: Ranking) -> set[int]:
    """Return the numbers of the stages whose scores are probabilities."""
    return {number for number, stage in enumerate(ranking.stages) if stage.calibrated}


def relevance_scores(hits: Sequence[Hit], calibrated: Collection[int]) -> list[float]:
    """
    Return a score from 0 to 1 for each hit, in descending order.

    Scores of the stages in `calibrated` are used as they are. Others pass through the logistic
    function, so that they are comparable between requests.
    """
    values: list[float] = []
    lowest = 1.0
    for stage, group in groupby(hits, key=lambda hit: hit.stage):
        ceiling = lowest
        for hit in group:
            own = _clipped(hit.score) if stage in calibrated else ceiling * sigmoid(hit.score)
            lowest = min(lowest, own)
            values.append(lowest)
    return values


def sigmoid(value: float) -> float:
    """The logistic function, without overflow; 0 for NaN."""
    if math.isnan(value):
        return 0.0
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(max(value, -700.0)) / (1 + math.exp(max(value, -700.0)))


def _clipped(value: float) -> float:
    return 0.0 if math.isnan(value) else min(max(value, 0.0), 1.0)
