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
    "AnswerCalibration",
    "LogitCalibration",
    "TwoReadings",
    "log_odds",
    "probability_of",
    "read_answer_calibration",
    "read_calibration",
    "read_threshold",
    "read_two_readings",
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
