"""Drop schedules learned from dev sets: score once at every depth, then search on the scores."""

from __future__ import annotations

from .schedule_fitting import TuningResult, tune
from .score_tables import ScoreTable, score_set

__all__ = ["ScoreTable", "TuningResult", "score_set", "tune"]
