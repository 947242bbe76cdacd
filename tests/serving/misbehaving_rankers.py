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

from askline.rankers.base import Ranker
from askline.rankers.deadline import Stop
from askline.rankers.requests import Request, ScoreArray
from askline.text.words import split_words
from askline.types import Ranking, Span

ENTRY_POINTS = """[askline.rankers]
slow = tests.serving.misbehaving_rankers:Slow
calibrated = tests.serving.misbehaving_rankers:Calibrated
crashing = tests.serving.misbehaving_rankers:Crashing
failing = tests.serving.misbehaving_rankers:Failing
batching = tests.serving.misbehaving_rankers:Batching
wedged = tests.serving.misbehaving_rankers:Wedged
"""


def _overlap(question: str, candidates: Sequence[str]) -> ScoreArray:
    """The fraction of the question's words that a candidate has."""
    asked = set(split_words(question))
    return np.array(
        [len(asked & set(split_words(text))) / max(1, len(asked)) for text in candidates],
        np.float64,
    )


@dataclass(frozen=True)
class Slow(Ranker):
    """Takes the milliseconds that the last word of the question states."""

    name: ClassVar[str] = "slow"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        last = split_words(question)[-1:]
        until = time.monotonic() + (int(last[0]) if last and last[0].isdigit() else 0) / 1000
        while time.monotonic() < until:
            time.sleep(0.002)
        return _overlap(question, texts)


@dataclass(frozen=True)
class Calibrated(Ranker):
    """Its scores are probabilities: the fraction of shared words. Its phrases are years."""

    name: ClassVar[str] = "calibrated"
    threshold: ClassVar[float] = 0.5

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        return _overlap(question, texts)

    def find_spans(self, question: str, texts: Sequence[str]) -> list[Span | None]:
        found = [re.search(r"\b\d{4}\b", text) for text in texts]
        return [Span(match.start(), match.end(), 2.0, 1.0) if match else None for match in found]


@dataclass(frozen=True)
class Crashing(Ranker):
    """Kills its process for `die`, and for `die once FILE` if the file does not exist yet."""

    name: ClassVar[str] = "crashing"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        *_, mark = question.split() or [""]
        if question.startswith("die once"):
            if not os.path.exists(mark):
                open(mark, "x").close()
                os.kill(os.getpid(), signal.SIGKILL)
        elif question.startswith("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        return _overlap(question, texts)


@dataclass(frozen=True)
class Failing(Ranker):
    """Raises an exception that is not one of askline's, except for the warm-up question."""

    name: ClassVar[str] = "failing"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        if question == "Which lamp burns?":
            return _overlap(question, texts)
        raise ZeroDivisionError("a secret")


@dataclass(frozen=True)
class Batching(Ranker):
    """Takes 50 ms for any number of questions. A batch with the question `break` fails."""

    name: ClassVar[str] = "batching"

    @property
    def batches_requests(self) -> bool:
        return True

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        time.sleep(0.05)
        if len(requests) > 1 and any(request.question == "break" for request in requests):
            raise ZeroDivisionError
        return Slow().run_batch(requests, stop)


@dataclass(frozen=True)
class Wedged(Ranker):
    """Cannot be interrupted: `sleep` blocks in one call, `hold` keeps the interpreter lock."""

    name: ClassVar[str] = "wedged"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        if question == "sleep":
            time.sleep(60)
        elif question == "hold":
            sum(range(10**13))
        return _overlap(question, texts)
