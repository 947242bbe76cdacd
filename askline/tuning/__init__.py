"""Drop schedules learned from dev sets: scored once at every depth, then searched on paper."""

from __future__ import annotations

from .fitting import tune
from .found import Tuned
from .scoring import score_set
from .tables import ScoreTable

__all__ = ["ScoreTable", "Tuned", "score_set", "tune"]
