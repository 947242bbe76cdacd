"""Rank and score jobs, as a worker executes them."""

from __future__ import annotations

from ..rankers.base import Ranker
from ..rankers.probability import calibrated_stages, log_odds, ranking_relevance
from ..types import Ranking
from .messages import RankJob, RankResult, ScoreJob, ScoreResult

__all__ = [
    "rank",
    "rank_result",
    "score",
]


def rank(ranker: Ranker, job: RankJob, *, tokens: int, deadline_ms: float | None) -> RankResult:
    """Rank the candidates of one request."""
    ranking = ranker.trace(job.question, job.candidates, deadline_ms=deadline_ms)
    return rank_result(ranker, ranking, tokens)


def rank_result(ranker: Ranker, ranking: Ranking, tokens: int) -> RankResult:
    """Return a ranking as the result of a job."""
    hits, calibrated = ranking.hits, calibrated_stages(ranking)
    scores = ranking_relevance(ranking)
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
        for hit, value in zip(ranking.hits, ranking_relevance(ranking), strict=True):
            scores[positions[hit.index]] = value
    return ScoreResult(scores, tokens, str(ranker))
