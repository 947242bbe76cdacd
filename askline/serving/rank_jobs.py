"""
Rank and score jobs, as a worker executes them, and the relevance scores they return.

Clients of rerankers expect scores from 0 to 1 in descending order. The scores of a ranker compare
within one stage only, and candidates dropped by an early stage follow those that a later stage
kept. So a dropped candidate gets at most the lowest score kept: its own probability if that is
lower, or a fraction of it if the stage is not calibrated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import groupby

from ..rankers.base import Ranker
from ..rankers.probability import log_odds
from ..types import Hit, Ranking
from .messages import RankJob, RankResult, ScoreJob, ScoreResult

__all__ = [
    "calibrated_stages",
    "rank",
    "rank_result",
    "relevance_scores",
    "score",
    "sigmoid",
]


def rank(ranker: Ranker, job: RankJob, *, tokens: int, deadline_ms: float | None) -> RankResult:
    """Rank the candidates of one request."""
    ranking = ranker.trace(job.question, job.candidates, deadline_ms=deadline_ms)
    return rank_result(ranker, ranking, tokens)


def rank_result(ranker: Ranker, ranking: Ranking, tokens: int) -> RankResult:
    """Return a ranking as the result of a job."""
    hits, calibrated = ranking.hits, calibrated_stages(ranking)
    scores = relevance_scores(hits, calibrated)
    last = max((hit.stage for hit in hits), default=0)
    return RankResult(
        order=[hit.index for hit in hits],
        scores=scores,
        raw_scores=[
            hit.score if hit.stage == last and last not in calibrated else log_odds(score)
            for hit, score in zip(hits, scores, strict=True)
        ],
        tokens=tokens,
        model=str(ranker),
    )


def score(ranker: Ranker, job: ScoreJob, *, tokens: int, deadline_ms: float | None) -> ScoreResult:
    """Score pairs. The pairs of one question are ranked as one list of candidates."""
    pairs_of: dict[str, list[int]] = {}
    for position, (question, _) in enumerate(job.pairs):
        pairs_of.setdefault(question, []).append(position)
    scores = [0.0] * len(job.pairs)
    for question, positions in pairs_of.items():
        texts = [job.pairs[position][1] for position in positions]
        ranking = ranker.trace(question, texts, deadline_ms=deadline_ms)
        values = relevance_scores(ranking.hits, calibrated_stages(ranking))
        for hit, value in zip(ranking.hits, values, strict=True):
            scores[positions[hit.index]] = value
    return ScoreResult(scores, tokens, str(ranker))


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
