"""What tuning found, as records and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..rankers.probability import LogitCalibration
from ..rankers.schedule import TunedRow, TunedSchedule
from .schedule_search import Trial
from .selection import Choice

__all__ = [
    "ALPHAS",
    "LengthResult",
    "TuningResult",
    "trial_as_dict",
]

ALPHAS = (0.3, 0.4, 0.5)


@dataclass(frozen=True, eq=False)
class LengthResult:
    """What was found for lists of one length."""

    count: int
    questions: int
    choice: Choice
    front: Sequence[Trial]
    rule: Sequence[Trial]
    """The paper's rule with α 0.3, 0.4 and 0.5 on the same lists, for comparison."""

    @property
    def row(self) -> TunedRow:
        """For the schedule."""
        return TunedRow(self.count, self.choice.trial.keeps)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; measures in percent, prices relative to full depth."""
        held = self.choice.held_out
        return {
            "count": self.count,
            "lists": self.questions,
            "full": trial_as_dict(self.choice.full),
            "chosen": trial_as_dict(self.choice.trial),
            "held out, against full depth": {
                "P@1": round(100 * held.p1, 2),
                "P@1 ±": round(100 * held.p1_error, 2),
                "MAP": round(100 * held.map, 2),
                "cost": round(held.price, 4),
            },
            "front": [trial_as_dict(trial) for trial in self.front],
            "alpha": {
                str(alpha): trial_as_dict(trial)
                for alpha, trial in zip(ALPHAS, self.rule, strict=True)
            },
        }


@dataclass(frozen=True, eq=False)
class TuningResult:
    """A schedule for every length of list, and what speaks for it."""

    schedule: TunedSchedule
    rows: tuple[LengthResult, ...]
    first: int
    """How many the first stage keeps; 0 where there is none."""
    pipelines: tuple[LengthResult, ...]
    """First stage and cascade together on whole padded lists, with the schedule as it will run."""
    calibration: dict[int, LogitCalibration]
    threshold: float
    budget: float
    sets: tuple[str, ...]

    def to_config(self) -> dict[str, Any]:
        """What goes into the model folder's config."""
        about = {"budget": self.budget, "tuned_on": list(self.sets)}
        if self.first:
            about["first"] = self.first
        return {
            "schedule": self.schedule.to_config() | about,
            "calibration": {
                str(depth): {"scale": line.scale, "shift": line.shift}
                for depth, line in self.calibration.items()
            },
            "threshold": self.threshold,
        }

    def as_dict(self) -> dict[str, Any]:
        """The report, for JSON."""
        return {
            **self.to_config(),
            "rows": [row.as_dict() for row in self.rows],
            "pipelines": [found.as_dict() for found in self.pipelines],
        }


def trial_as_dict(trial: Trial) -> dict[str, Any]:
    """One point of a front."""
    return {
        "cost": round(trial.price, 4),
        "P@1": round(100 * trial.p1, 2),
        "MAP": round(100 * trial.map, 2),
        "keeps": {str(step.depth): step.keep for step in trial.keeps},
    }
