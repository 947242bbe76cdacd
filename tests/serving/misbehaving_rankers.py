"""Rankers that are slow, crash or fail on demand, which the workers of a test load by name."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from askline.engine.spans import Span
from askline.rankers.base import FloatArray
from askline.rankers.pipeline import ScoringRanker, trace
from askline.text.words import split_words
from askline.types import Ranking

ENTRY_POINTS = """[askline.rankers]
slow = tests.serving.misbehaving_rankers:Slow
calibrated = tests.serving.misbehaving_rankers:Calibrated
crashing = tests.serving.misbehaving_rankers:Crashing
failing = tests.serving.misbehaving_rankers:Failing
batching = tests.serving.misbehaving_rankers:Batching
"""


def _overlap(question: str, candidates: Sequence[str]) -> FloatArray:
    """The fraction of the question's words that a candidate has."""
    asked = set(split_words(question))
    return np.array(
        [len(asked & set(split_words(text))) / max(1, len(asked)) for text in candidates],
        np.float64,
    )


@dataclass(frozen=True)
class Slow(ScoringRanker):
    """Takes the milliseconds that the last word of the question states."""

    name: ClassVar[str] = "slow"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        last = split_words(question)[-1:]
        until = time.monotonic() + (int(last[0]) if last and last[0].isdigit() else 0) / 1000
        while time.monotonic() < until:
            time.sleep(0.002)
        return _overlap(question, candidates)


@dataclass(frozen=True)
class Calibrated(ScoringRanker):
    """Its scores are probabilities: the fraction of shared words. Its phrases are years."""

    name: ClassVar[str] = "calibrated"
    threshold: ClassVar[float] = 0.5

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        return _overlap(question, candidates)

    def read(self, question: str, candidates: Sequence[str]) -> list[Span | None]:
        found = [re.search(r"\b\d{4}\b", text) for text in candidates]
        return [Span(match.start(), match.end(), 2.0, 1.0) if match else None for match in found]


@dataclass(frozen=True)
class Crashing(ScoringRanker):
    """Kills its process for `die`, and for `die once FILE` if the file does not exist yet."""

    name: ClassVar[str] = "crashing"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        *_, mark = question.split() or [""]
        if question.startswith("die once"):
            if not os.path.exists(mark):
                open(mark, "x").close()
                os.kill(os.getpid(), signal.SIGKILL)
        elif question.startswith("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        return _overlap(question, candidates)


@dataclass(frozen=True)
class Failing(ScoringRanker):
    """Raises an exception that is not one of askline's, except for the warm-up question."""

    name: ClassVar[str] = "failing"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        if question == "Which lamp burns?":
            return _overlap(question, candidates)
        raise ZeroDivisionError("a secret")


@dataclass(frozen=True)
class Batching(ScoringRanker):
    """Takes 50 ms for any number of questions. A batch with the question `break` fails."""

    name: ClassVar[str] = "batching"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        time.sleep(0.05)
        return _overlap(question, candidates)

    def trace_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> list[Ranking]:
        time.sleep(0.05)
        if any(question == "break" for question, _ in requests):
            raise ZeroDivisionError
        return [trace(Slow(), question, candidates) for question, candidates in requests]
