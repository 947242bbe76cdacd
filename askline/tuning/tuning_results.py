"""The results of tuning, as records and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..rankers.probability import LogitCalibration
from ..rankers.schedule import TunedRow, TunedSchedule
from .schedule_search import Choice, Trial

__all__ = [
    "ALPHAS",
    "LengthResult",
    "TuningResult",
]

ALPHAS = (0.3, 0.4, 0.5)
"""Drop fractions of the paper's rule, which tuned schedules are compared with."""


@dataclass(frozen=True, eq=False)
class LengthResult:
    """The result for lists of one length."""

    count: int
    """Candidates per list."""
    questions: int
    choice: Choice
    front: Sequence[Trial]
    """The Pareto front, cheapest first."""
    fixed_fractions: Sequence[Trial]
    """The paper's rule on the same lists, with each of `ALPHAS`."""

    @property
    def row(self) -> TunedRow:
        """The row of the schedule."""
        return TunedRow(self.count, self.choice.trial.keeps)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; quality in percent, cost relative to full depth."""
        held_out = self.choice.held_out
        return {
            "count": self.count,
            "lists": self.questions,
            "full": _trial_as_dict(self.choice.full),
            "chosen": _trial_as_dict(self.choice.trial),
            "held out, against full depth": {
                "P@1": round(100 * held_out.p1, 2),
                "P@1 ±": round(100 * held_out.p1_error, 2),
                "MAP": round(100 * held_out.map, 2),
                "cost": round(held_out.cost, 4),
            },
            "front": [_trial_as_dict(trial) for trial in self.front],
            "alpha": {
                str(alpha): _trial_as_dict(trial)
                for alpha, trial in zip(ALPHAS, self.fixed_fractions, strict=True)
            },
        }


@dataclass(frozen=True, eq=False)
class TuningResult:
    """A schedule for every list length, with its calibration and the measurements behind it."""

    schedule: TunedSchedule
    rows: tuple[LengthResult, ...]
    first: int
    """How many candidates the first stage keeps; 0 without a first stage."""
    pipelines: tuple[LengthResult, ...]
    """First stage and cascade together on whole padded lists, with the final schedule."""
    calibration: dict[int, LogitCalibration]
    threshold: float
    budget: float
    sets: tuple[str, ...]

    def to_config(self) -> dict[str, Any]:
        """The entries for the model folder's `config.json`."""
        settings = {"budget": self.budget, "tuned_on": list(self.sets)}
        if self.first:
            settings["first"] = self.first
        return {
            "schedule": self.schedule.to_config() | settings,
            "calibration": {
                str(depth): {"scale": line.scale, "shift": line.shift}
                for depth, line in self.calibration.items()
            },
            "threshold": self.threshold,
        }

    def as_dict(self) -> dict[str, Any]:
        """The whole report, for JSON."""
        return {
            **self.to_config(),
            "rows": [row.as_dict() for row in self.rows],
            "pipelines": [pipeline.as_dict() for pipeline in self.pipelines],
        }


def _trial_as_dict(trial: Trial) -> dict[str, Any]:
    return {
        "cost": round(trial.mean_cost, 4),
        "P@1": round(100 * trial.p1, 2),
        "MAP": round(100 * trial.map, 2),
        "keeps": {str(step.depth): step.keep for step in trial.keeps},
    }
