"""Probabilities from logits: Platt scaling for each depth of a cascade."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ModelError

__all__ = [
    "UNCALIBRATED",
    "AloneCalibration",
    "AnswerCalibration",
    "LogitCalibration",
    "log_odds",
    "probability_of",
    "read_alone_calibration",
    "read_answer_calibration",
    "read_calibration",
    "read_threshold",
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
    The log odds of an answer of a corpus: `logit * l + retrieval * r + bias`.

    `l` is the logit of a classifier, `r` the standard score of the retrieval among the sentences
    that were retrieved for the question.
    """

    logit: float = 1.0
    retrieval: float = 0.0
    bias: float = 0.0

    def log_odds(self, logit: float, retrieval: float) -> float:
        return self.logit * logit + self.retrieval * retrieval + self.bias


@dataclass(frozen=True, slots=True)
class AloneCalibration:
    """
    The log odds of a sentence that was read in its passage and then alone.

    `context * c + alone * a + retrieval * r + bias`: the logit in context, the log odds of the
    sentence alone, and the standard score of the retrieval.
    """

    count: int
    """How many sentences are read alone: the best ones in context."""
    context: float
    alone: float
    retrieval: float
    bias: float

    def log_odds(self, context: float, alone: float, retrieval: float) -> float:
        odds = self.context * context + self.alone * alone
        return odds + self.retrieval * retrieval + self.bias


def read_alone_calibration(config: Mapping[str, Any]) -> AloneCalibration | None:
    """From `{"alone": {"count": 10, "context": 0.2, "alone": 0.6, …}}`; None if absent."""
    found = config.get("alone")
    if found is None:
        return None
    try:
        weights = _floats({name: value for name, value in found.items() if name != "count"})
        made = AloneCalibration(int(found["count"]), **weights)
        if made.count < 1 or min(made.context, made.alone, made.retrieval) < 0:
            raise ValueError("count must be positive and no weight negative")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            'alone must have the form {"count": 10, "context": 0.2, "alone": 0.6, '
            f'"retrieval": 0.4, "bias": -2.0}}, got {found!r} ({error}).'
        ) from error
    return made


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


def read_answer_calibration(config: Mapping[str, Any]) -> dict[int, AnswerCalibration]:
    """By depth, from `{"answer": {"12": {"logit": 0.9, "retrieval": 0.4, "bias": -0.2}}}`."""
    found = config.get("answer") or {}
    try:
        made = {int(depth): AnswerCalibration(**_floats(line)) for depth, line in found.items()}
        if not all(line.logit > 0 and line.retrieval >= 0 for line in made.values()):
            raise ValueError("logit must be positive and retrieval not negative")
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(
            'answer must have the form {"12": {"logit": 0.9, "retrieval": 0.4, "bias": -0.2}}, '
            f"got {found!r} ({error})."
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
