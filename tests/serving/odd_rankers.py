"""Rankers with one odd habit each, for the workers of a test's server to load by name."""

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
slow = tests.serving.odd_rankers:Slow
chance = tests.serving.odd_rankers:Chance
mortal = tests.serving.odd_rankers:Mortal
broken = tests.serving.odd_rankers:Broken
together = tests.serving.odd_rankers:Together
"""


def _shared(question: str, candidates: Sequence[str]) -> FloatArray:
    """The share of the question's words that a candidate has."""
    asked = set(split_words(question))
    return np.array(
        [len(asked & set(split_words(text))) / max(1, len(asked)) for text in candidates],
        np.float64,
    )


@dataclass(frozen=True)
class Slow(ScoringRanker):
    """Takes as many milliseconds as a number at the end of the question says."""

    name: ClassVar[str] = "slow"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        last = split_words(question)[-1:]
        until = time.monotonic() + (int(last[0]) if last and last[0].isdigit() else 0) / 1000
        while time.monotonic() < until:
            time.sleep(0.002)
        return _shared(question, candidates)


@dataclass(frozen=True)
class Chance(ScoringRanker):
    """Calibrated: the share of the question's words is the chance. Its phrases are years."""

    name: ClassVar[str] = "chance"
    threshold: ClassVar[float] = 0.5

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        return _shared(question, candidates)

    def read(self, question: str, candidates: Sequence[str]) -> list[Span | None]:
        found = [re.search(r"\b\d{4}\b", text) for text in candidates]
        return [Span(match.start(), match.end(), 2.0, 1.0) if match else None for match in found]


@dataclass(frozen=True)
class Mortal(ScoringRanker):
    """Kills its process: at every question about dying, or only where the file is not there yet."""

    name: ClassVar[str] = "mortal"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        *_, mark = question.split() or [""]
        if question.startswith("die once"):
            if not os.path.exists(mark):
                open(mark, "x").close()
                os.kill(os.getpid(), signal.SIGKILL)
        elif question.startswith("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        return _shared(question, candidates)


@dataclass(frozen=True)
class Broken(ScoringRanker):
    """Raises something that is no error of askline's."""

    name: ClassVar[str] = "broken"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        if question == "Which lamp burns?":  # that of the start
            return _shared(question, candidates)
        raise ZeroDivisionError("a secret of the house")


@dataclass(frozen=True)
class Together(ScoringRanker):
    """Takes 50 ms, however many questions there are."""

    name: ClassVar[str] = "together"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        time.sleep(0.05)
        return _shared(question, candidates)

    def trace_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> list[Ranking]:
        time.sleep(0.05)
        if any(question == "break" for question, _ in requests):
            raise ZeroDivisionError
        return [trace(Slow(), question, candidates) for question, candidates in requests]
