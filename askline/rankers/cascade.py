"""
Questions on their way down a cascade: who is left, who was dropped where, what it cost.

Several go down together: at each depth, those that have a step there are computed in one go, and
the others wait.

Runs of several questions, on engines that let their pairs meet and on those that do not.

`cascade`: one encoder with a classifier at several depths (Soldaini & Moschitti, 2020).

All candidates enter the first layers; behind a classifier only the best go deeper. A candidate that
was dropped keeps the place that its last classifier gave it. What is dropped where is a schedule:
the model folder's own, which was tuned on dev sets, or one of the options.

The ranker is the same whatever runs the layers: `engine/layerwise.py` defines the engine.

A sequence of encoders trained for one depth each, which the paper calls SR, is a pipeline:
`cascade(DIR4) % 90 >> cascade(DIR6) % 63 >> cascade(DIR8)`. Nothing is handed on but the
candidates, so every stage begins at the first layer again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..engine.encoder import load_encoder
from ..engine.layerwise import LayerwiseEncoder, LayerwiseRun, SharedEncoder, SharedRun, Unhurried
from ..engine.spans import Span
from ..errors import InputError, ModelError, RankerError
from ..models.folder import ModelFolder
from ..types import Cost, Hit, Ranking, StageReport
from .base import Asked
from .deadline import Deadline, Stop
from .pipeline import Staged, check_input
from .probability import UNCALIBRATED, Line, read_calibration, read_threshold
from .schedule import Drop, Keeps, Learned, Schedule, Step, parse_keeps
from .throughput import Begun, Pace

__all__ = [
    "Cascade",
    "Descent",
    "begin_all",
    "descend",
    "shipped_folder",
]

IntArray = NDArray[np.int64]


class Descent:
    """One question on its way down. Those that are left stand best first, as far as is known."""

    def __init__(
        self, cascade: Cascade, tokens: IntArray, order: Sequence[int] | None, start: float
    ) -> None:
        self.cascade = cascade
        self.tokens = tokens
        self.steps = {step.depth: step for step in cascade.schedule.plan(len(tokens))}
        self.left: IntArray = np.arange(len(self.tokens)) if order is None else np.asarray(order)
        self.chance = np.zeros(len(self.tokens))  # of the last classifier that judged it
        self.judged = np.zeros(len(self.tokens), bool)
        self.stage = 0  # the classifier that decided the order of those left
        self.depth = 0
        self.planned = len(self.left)  # how many would be left by now if time had not run out
        self.cut_short = False
        self.dropped: list[Hit] = []
        self.reports: list[StageReport] = []
        self.since = start  # the first stage pays for tokenising

    def has_ahead(self, depth: int) -> bool:
        """Whether a step at this depth or a deeper one is still to be taken."""
        return not self.cut_short and max(self.steps) >= depth

    def take(self, step: Step, logits: NDArray[np.float32], time_is_up: Stop | None) -> None:
        """Drop what this step does not keep; `logits` are of those left, nan if time was up."""
        if self.cut_short:
            self._skip(step)
        else:
            self._judge(step, logits, time_is_up)
        self.planned = step.keep

    def ranking(self) -> Ranking:
        """The hits and reports; what was never judged is at the end."""
        hits = (*self._hits(self.left), *self.dropped)
        return Ranking(hits, tuple(self.reports), int((~self.judged).sum()))

    def _judge(self, step: Step, logits: NDArray[np.float32], time_is_up: Stop | None) -> None:
        seen = ~np.isnan(logits)
        self._check(seen, step, time_is_up)
        reached = self.left[seen]
        self.chance[reached] = self.cascade.chances(step.depth, logits[seen])
        self.judged[reached] = True
        self.cut_short = len(reached) < len(self.left)
        entered = len(self.left)
        if len(reached):
            self.stage = len(self.reports)
            self._sort()
        if not self.cut_short:
            self.dropped = [*self._hits(self.left[step.keep :]), *self.dropped]
            self.left = self.left[: step.keep]
        self._report(step, entered, reached)
        self.depth = step.depth

    def _sort(self) -> None:
        # Judged before not judged, then by chance, then as given. Where time ran out in the middle,
        # chances of two depths stand side by side: that is what their calibration is good for.
        keys = (self.left, -self.chance[self.left], ~self.judged[self.left])
        self.left = self.left[np.lexsort(keys)]

    def _hits(self, rows: IntArray) -> list[Hit]:
        scores = self.chance[rows].tolist()
        return [
            Hit(row, score, self.stage) for row, score in zip(rows.tolist(), scores, strict=True)
        ]

    def _report(self, step: Step, entered: int, reached: IntArray) -> None:
        now = time.perf_counter()
        layers, full = step.depth - self.depth, self.cascade.encoder.layers
        cost = Cost(
            layers * len(reached),
            layers * int(self.tokens[reached].sum()),
            full * len(self.tokens),
            full * int(self.tokens.sum()),
        )
        name, skipped = self.cascade.at(step.depth), entered - len(reached)
        self.reports.append(
            StageReport(
                name, entered, len(self.left), now - self.since, skipped, cost, calibrated=True
            )
        )
        self.since = now

    def _skip(self, step: Step) -> None:
        """A classifier that was not begun: as many as the plan had for it were not judged."""
        name, count = self.cascade.at(step.depth), self.planned
        self.reports.append(StageReport(name, count, step.keep, 0.0, skipped=count))

    def _check(self, seen: NDArray[np.bool_], step: Step, time_is_up: Stop | None) -> None:
        if time_is_up is None and not seen.all():
            row = int(self.left[int(seen.argmin())])
            raise RankerError(f"{self.cascade.at(step.depth)} gave candidate {row} the score NaN.")


def descend(run: SharedRun, descents: Sequence[Descent], time_is_up: Stop | None) -> None:
    """Take all these questions, whose candidates follow each other in the run, to their end."""
    counts = [len(descent.tokens) for descent in descents]
    bases = np.cumsum([0, *counts])[:-1]
    for depth in sorted({depth for descent in descents for depth in descent.steps}):
        rows, waiting = list[IntArray](), list[IntArray]()
        for base, own in zip(bases.tolist(), descents, strict=True):
            if own.has_ahead(depth):
                (rows if depth in own.steps else waiting).append(base + own.left)
        logits = np.full(sum(counts), np.nan, np.float32)  # of all; those not asked for stay so
        if rows:
            asked = _in_turn(rows) if time_is_up is not None else np.concatenate(rows)
            others = np.concatenate(waiting) if waiting else None
            logits[asked] = run.advance(asked, depth, stop=time_is_up, waiting=others)
        for own, base in zip(descents, bases.tolist(), strict=True):
            if depth in own.steps:
                own.take(own.steps[depth], logits[base + own.left], time_is_up)


def _in_turn(rows: Sequence[IntArray]) -> IntArray:
    """The most promising of each question first, so that time runs out on the others."""
    shares = [np.arange(len(own)) / len(own) for own in rows]
    return np.asarray(np.concatenate(rows)[np.argsort(np.concatenate(shares), kind="stable")])


def begin_all(
    encoder: LayerwiseEncoder, requests: Sequence[tuple[str, Sequence[str]]]
) -> SharedRun:
    """One run over the candidates of all these questions, numbered through."""
    if isinstance(encoder, SharedEncoder):
        return encoder.begin_many(requests)
    return _Apart([encoder.begin(*request) for request in requests])


class _Apart:
    """A `SharedRun` of an engine that knows one question at a time: one after the other."""

    def __init__(self, runs: Sequence[LayerwiseRun]) -> None:
        self._runs = runs
        self.tokens = np.concatenate([run.tokens for run in runs])
        self._ends = np.cumsum([len(run.tokens) for run in runs])

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,  # noqa: ARG002
    ) -> NDArray[np.float32]:
        """Those that wait are of questions that are not asked, and rest untouched."""
        logits = np.full(len(rows), np.nan, np.float32)
        whose = np.searchsorted(self._ends, rows, side="right")
        for number in np.unique(whose).tolist():
            own, run = whose == number, self._runs[number]
            base = self._ends[number] - len(run.tokens)
            logits[own] = run.advance(rows[own] - base, depth, stop=stop)
        return logits


_MADE_UP = ("Who wrote the book?", ["She wrote it in the spring of that year."] * 4)


@dataclass(frozen=True, eq=False)
class Cascade(Staged):
    """Scores are chances, by the calibration of each depth; `Hit.stage` counts the classifiers."""

    name: ClassVar[str] = "cascade"

    encoder: LayerwiseEncoder = field(repr=False)
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
        encoder = load_encoder(opened)
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


def _parts_ready(encoder: LayerwiseEncoder) -> int:
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
