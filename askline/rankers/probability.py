"""
Probabilities from logits, by Platt scaling for each depth of a cascade, and relevance scores.

A relevance score is one number from 0 to 1 per hit, in descending order, as clients of rerankers
expect. The scores of a ranker compare within one stage only, and documents dropped by an early
stage follow those that a later stage kept. So a dropped document gets at most the lowest score
kept: its own probability if that is lower, or a fraction of it if the stage is not calibrated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ModelError
from ..types import Hit, Ranking

__all__ = [
    "UNCALIBRATED",
    "AnswerCalibration",
    "LogitCalibration",
    "TwoReadings",
    "calibrated_stages",
    "log_odds",
    "probability_of",
    "ranking_relevance",
    "read_answer_calibration",
    "read_calibration",
    "read_threshold",
    "read_two_readings",
    "relevance_scores",
    "sigmoid",
]

_THRESHOLD = 0.5
_EDGE = 1e-12  # keeps log odds finite


@dataclass(frozen=True, slots=True)
class LogitCalibration:
    """`sigmoid(scale * logit + shift)`; the scale is positive, so the order does not change."""

    scale: float = 1.0
    shift: float = 0.0

    def logit(self, probability: float) -> float:
        """The logit that has this probability."""
        return (log_odds(probability) - self.shift) / self.scale

    def __call__(self, logits: ArrayLike) -> NDArray[np.float64]:
        odds = self.scale * np.asarray(logits, np.float64) + self.shift
        # exp of a negative number neither overflows nor rounds small probabilities to 0.
        small = np.exp(-np.abs(odds))
        return np.asarray(np.where(odds < 0, small, 1.0) / (1.0 + small))


UNCALIBRATED = LogitCalibration()


@dataclass(frozen=True, slots=True)
class AnswerCalibration:
    """
    The log odds of an answer of a corpus: `alone * a + retrieval * r + bias`.

    `a` are the log odds of the sentence read alone, `r` is the standard score of the retrieval
    among the sentences that were retrieved for the question.
    """

    alone: float = 1.0
    retrieval: float = 0.0
    bias: float = 0.0

    def log_odds(self, alone: float, retrieval: float) -> float:
        return self.alone * alone + self.retrieval * retrieval + self.bias


@dataclass(frozen=True, slots=True)
class TwoReadings:
    """
    The log odds of a sentence that was read alone and, if its passage was chosen, in context.

    `alone * a + retrieval * r + bias`, and `context * c + in_context` if it was read in context:
    `c` are the log odds of the last classifier in context.
    """

    alone: float = 0.7
    context: float = 0.3
    in_context: float = 0.0
    retrieval: float = 0.0
    bias: float = 0.0

    def log_odds(self, alone: float, context: float | None, retrieval: float) -> float:
        odds = self.alone * alone + self.retrieval * retrieval + self.bias
        return odds if context is None else odds + self.context * context + self.in_context


def probability_of(odds: float) -> float:
    """The sigmoid of log odds."""
    return float(UNCALIBRATED(odds))


def log_odds(probability: float) -> float:
    """The logit; finite even where the probability was rounded to 0 or 1."""
    inside = min(max(probability, _EDGE), 1 - _EDGE)
    return math.log(inside / (1 - inside))


def read_calibration(config: Mapping[str, Any]) -> dict[int, LogitCalibration]:
    """By depth, from `{"calibration": {"4": {"scale": 0.9, "shift": -0.2}}}`; may be absent."""
    found = config.get("calibration") or {}
    try:
        scalings = {
            int(depth): LogitCalibration(float(line["scale"]), float(line["shift"]))
            for depth, line in found.items()
        }
        if not all(line.scale > 0 for line in scalings.values()):
            raise ValueError("scale must be positive")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            'calibration must have the form {"4": {"scale": 0.9, "shift": -0.2}}, '
            f"got {found!r} ({error})."
        ) from error
    return scalings


def read_answer_calibration(found: Mapping[str, Any]) -> dict[int, AnswerCalibration]:
    """By depth, from `{"10": {"alone": 0.9, "retrieval": 0.4, "bias": -0.2}}`."""
    try:
        made = {int(depth): AnswerCalibration(**_floats(line)) for depth, line in found.items()}
        if not all(line.alone > 0 and line.retrieval >= 0 for line in made.values()):
            raise ValueError("alone must be positive and retrieval not negative")
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(
            'answer must have the form {"10": {"alone": 0.9, "retrieval": 0.4, "bias": -0.2}}, '
            f"got {found!r} ({error})."
        ) from error
    return made


def read_two_readings(found: Mapping[str, Any]) -> TwoReadings:
    """From `{"alone": 0.6, "context": 0.2, "in_context": 1.0, "retrieval": 0.2, "bias": -3.0}`."""
    try:
        made = TwoReadings(**_floats(found))
        if made.alone <= 0 or min(made.context, made.retrieval) < 0:
            raise ValueError("alone must be positive, context and retrieval not negative")
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(
            'both must have the form {"alone": 0.6, "context": 0.2, "in_context": 1.0, '
            f'"retrieval": 0.2, "bias": -3.0}}, got {found!r} ({error}).'
        ) from error
    return made


def _floats(line: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in line.items()}


def read_threshold(config: Mapping[str, Any]) -> float:
    """The probability below which the best candidate is not an answer; default 0.5."""
    found = config.get("threshold", _THRESHOLD)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found <= 1:
        raise ModelError(f"threshold must be a probability from 0 to 1, got {found!r}.")
    return float(found)


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
