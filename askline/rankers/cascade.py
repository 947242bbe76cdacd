"""
`cascade`: one encoder with a classifier at several depths (Soldaini & Moschitti, 2020).

All candidates enter the first layers; behind a classifier only the best go deeper. A candidate that
was dropped keeps the place that its last classifier gave it. What is dropped where is a schedule:
the model folder's own, which was tuned on dev sets, or one of the options.

The ranker is the same whatever runs the layers: `runtime/staged.py` says what it asks of an engine.

A sequence of encoders trained for one depth each, which the paper calls SR, is a pipeline:
`cascade(DIR4) % 90 >> cascade(DIR6) % 63 >> cascade(DIR8)`. Nothing is handed on but the
candidates, so every stage begins at the first layer again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ModelError
from ..models.folder import ModelFolder
from ..runtime.opening import open_encoder
from ..runtime.staged import Span, StagedEncoder, Unhurried
from ..types import Ranking
from .algebra import Staged, check_input
from .calibration import UNCALIBRATED, Line, read_calibration, read_threshold
from .deadline import Deadline, Stop
from .descent import Descent, descend
from .pace import Begun, Pace
from .schedule import Drop, Keeps, Learned, Schedule, parse_keeps
from .together import begin_all
from .tracing import Asked

__all__ = ["Cascade", "shipped_folder"]

_MADE_UP = ("Who wrote the book?", ["She wrote it in the spring of that year."] * 4)


@dataclass(frozen=True, eq=False)
class Cascade(Staged):
    """Scores are chances, by the calibration of each depth; `Hit.stage` counts the classifiers."""

    name: ClassVar[str] = "cascade"

    encoder: StagedEncoder = field(repr=False)
    schedule: Schedule
    calibration: Mapping[int, Line] = field(default_factory=dict)
    """By depth; where there is none, the chance is the sigmoid of the logit."""
    threshold: float = 0.5
    """A best score below it means that no candidate answers the question."""
    folder: str = ""
    options: str = ""
    """As given to `load`, for the spec text."""
    pace: Pace = field(default_factory=Pace, repr=False)
    """As seen so far; read where there is a deadline, and nowhere else."""

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str] = "",
        *,
        alpha: float | None = None,
        keeps: str = "",
        depth: int = 0,
    ) -> Cascade:
        """
        A model folder, or the cascade that comes with askline, with its tuned schedule.

        In place of that schedule: `alpha` drops the same share behind every classifier, `keeps` has
        numbers (see `parse_keeps`), and `depth` alone looks once, at that depth. Together with one
        of the others, `depth` is where the cascade ends.
        """
        opened = ModelFolder.open(fspath(folder) or shipped_folder(), kind=cls.name)
        encoder = open_encoder(opened)
        return cls(
            encoder,
            _schedule(encoder.depths, opened, alpha=alpha, keeps=keeps, depth=depth),
            read_calibration(opened.config),
            read_threshold(opened.config),
            fspath(folder),
            _options(alpha=alpha, keeps=keeps, depth=depth),
        )

    def trace_all(self, asked: Sequence[Asked], time_is_up: Stop | None) -> list[Ranking]:
        """Pairs of all questions share batches; a report for each classifier."""
        for one in asked:
            check_input(one.question, one.candidates)
        work = math.inf
        if isinstance(time_is_up, Deadline):
            work = self.pace.work_in(time_is_up.left / max(1, len(asked)))
        begun = [Begun.of(one, self.schedule, work) for one in asked]
        if 0 < work < math.inf and not any(one.places for one in begun):
            self.pace.doubt()
        done = iter(self._descended([one.asked for one in begun if one.places], time_is_up))
        return [one.whole(next(done)) if one.places else one.none(str(self)) for one in begun]

    def _descended(self, asked: Sequence[Asked], time_is_up: Stop | None) -> list[Ranking]:
        """Rankings of questions that have candidates."""
        if not asked:
            return []
        start, ready = time.perf_counter(), _parts_ready(self.encoder)
        run = begin_all(self.encoder, [(one.question, one.candidates) for one in asked])
        ends = np.cumsum([len(one.candidates) for one in asked])[:-1]
        descents = [
            Descent(self, tokens, one.order, start)
            for one, tokens in zip(asked, np.split(run.tokens, ends), strict=True)
        ]
        descend(run, descents, time_is_up)
        rankings = [descent.ranking() for descent in descents]
        if ready == _parts_ready(self.encoder):  # else the time went into making parts
            work = math.fsum(map(_work, asked, rankings))
            self.pace.saw(work, time.perf_counter() - start)
        return rankings

    def prepare(self) -> None:
        """Have every layer and classifier made ready and the pace seen, on a list made up."""
        question, texts = _MADE_UP
        while self.pace.each is None:  # the second time, if parts were made the first time
            start, ready = time.perf_counter(), _parts_ready(self.encoder)
            run, rows = self.encoder.begin(question, texts), np.arange(len(texts))
            for depth in self.encoder.depths:
                run.advance(rows, depth)
            if ready == _parts_ready(self.encoder):
                work = _characters(question, texts) * self.encoder.layers
                self.pace.saw(work, time.perf_counter() - start)

    def read(self, question: str, candidates: Sequence[str]) -> list[Span | None]:
        """
        What the reading head points at inside each candidate, at full depth.

        For the few at the top of a ranking; None for all where the model has no reading head.
        """
        check_input(question, candidates)
        if not candidates:
            return []
        return self.encoder.begin(question, candidates).read(np.arange(len(candidates)))

    def chances(self, depth: int, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Logits of the classifier at that depth as chances."""
        return self.calibration.get(depth, UNCALIBRATED)(logits)

    def at(self, depth: int) -> str:
        """The spec text of the one classifier at that depth."""
        return _spec(self.folder, f"depth={depth}")

    def __str__(self) -> str:
        return _spec(self.folder, self.options)


def shipped_folder() -> Path:
    """The cascade that comes with askline."""
    path = Path(str(files("askline.models"))) / "shipped" / Cascade.name
    if not path.is_dir():
        raise ModelError(
            "No cascade comes with this copy of askline. Name a model folder, as in "
            "cascade('DIR'); `askline train cascade` and `askline export` make one."
        )
    return path


def _parts_ready(encoder: StagedEncoder) -> int:
    return encoder.parts_ready if isinstance(encoder, Unhurried) else 0


def _characters(question: str, texts: Sequence[str]) -> int:
    return sum(len(question) + len(text) for text in texts)


def _work(asked: Asked, ranking: Ranking) -> float:
    """Characters times layers, as if those that went deep were as long as the others."""
    mean = _characters(asked.question, asked.candidates) / len(asked.candidates)
    return mean * (ranking.cost.candidate_layers if ranking.cost else 0)


def _schedule(
    depths: Sequence[int], opened: ModelFolder, *, alpha: float | None, keeps: str, depth: int
) -> Schedule:
    if depth and depth not in depths:
        known = ", ".join(map(str, depths))
        raise InputError(f"depth must be one of {known}, got {depth}: classifiers stand there.")
    if alpha is not None and keeps:
        raise InputError("Give alpha or keeps, not both.")
    used = tuple(own for own in depths if not depth or own <= depth)
    if alpha is not None:
        return Drop(used, alpha)
    if keeps:
        return Keeps(used, parse_keeps(keeps, used))
    tuned = opened.config.get("schedule")
    return Keeps(used) if depth or not tuned else Learned.from_config(used, tuned)


def _options(*, alpha: float | None, keeps: str, depth: int) -> str:
    given = {
        "alpha": "" if alpha is None else str(alpha),
        "keeps": repr(keeps) if keeps else "",
        "depth": str(depth) if depth else "",
    }
    return ", ".join(f"{key}={value}" for key, value in given.items() if value)


def _spec(folder: str, options: str) -> str:
    inside = ", ".join(filter(None, [repr(folder) if folder else "", options]))
    return f"{Cascade.name}({inside})" if inside else Cascade.name
