"""
`cascade`: one encoder with a classifier at several depths (Soldaini & Moschitti, 2020).

All candidates enter the first layers; after a classifier only the best go deeper. A candidate that
was dropped keeps the place that its last classifier gave it. A schedule says how many are kept at
each depth: the one tuned on dev sets that the model folder holds, or one given by options.

`engine/layerwise.py` defines the encoder that a cascade runs on. A folder with a `context` also
ranks the sentences of passages in context; `context_cascade.py` has the rules.

The paper's SR, a sequence of encoders that were each trained for one depth, is a pipeline:
`cascade(DIR4) % 90 >> cascade(DIR6) % 63 >> cascade(DIR8)`. Only the candidates are passed on, so
every stage starts at the first layer again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engine.encoder import load_encoder
from ..engine.layerwise import LayerwiseEncoder
from ..errors import InputError, ModelError, RankerError
from ..models.cascade_config import ContextConfig
from ..models.folder import SHIPPED_LANGUAGES, ModelFolder, shipped_model_folder
from ..text.language import detect_language
from ..types import Cost, Hit, Passage, Ranking, Span, StageReport
from .base import Ranker, folder_to_pickle, spec_with_folder
from .context_cascade import ContextSettings, PassageBatch, passage_sizes
from .deadline import Deadline, Stop, Throughput
from .languages import rankers_by_language, run_each
from .probability import UNCALIBRATED, LogitCalibration, read_calibration, read_threshold
from .requests import Request, ScoreArray
from .schedule import (
    DropFraction,
    KeepCounts,
    Schedule,
    Step,
    TunedSchedule,
    candidate_layers,
    parse_keeps,
)

__all__ = ["Cascade", "CascadeOptions", "shipped_folder"]

IntArray = NDArray[np.int64]

_WARM_UP = ("Who wrote the book?", ["She wrote it in the spring of that year."] * 4)


class CascadeOptions(NamedTuple):
    """The arguments of `Cascade.load`, for the spec text and for pickling."""

    folder: str = ""
    alpha: float | None = None
    keeps: str = ""
    depth: int = 0
    language: str = ""

    @property
    def follows_language(self) -> bool:
        """Whether texts choose the model: neither a folder nor a language was named."""
        return not self.folder and not self.language

    def __str__(self) -> str:
        given = {
            "alpha": "" if self.alpha is None else str(self.alpha),
            "keeps": repr(self.keeps) if self.keeps else "",
            "depth": str(self.depth) if self.depth else "",
            "language": self.language,
        }
        options = ", ".join(f"{key}={value}" for key, value in given.items() if value)
        return spec_with_folder(Cascade.name, self.folder, options)


@dataclass(frozen=True, eq=False)
class Cascade(Ranker):
    """
    One encoder with a classifier at several depths; only the best documents go on to deeper layers.

    Scores are probabilities, calibrated per depth. `Hit.stage` counts the classifiers. `load` makes
    one from a model folder.
    """

    name: ClassVar[str] = "cascade"

    encoder: LayerwiseEncoder = field(repr=False)
    schedule: Schedule = field(repr=False)  # the settings of a shipped model fill a screen
    calibration: Mapping[int, LogitCalibration] = field(default_factory=dict, repr=False)
    """By depth; for a depth without one, the probability is the sigmoid of the logit."""
    threshold: float = 0.5
    options: CascadeOptions | None = None
    """What it was loaded with; None if it was not made by `load`."""
    context: ContextSettings | None = field(default=None, repr=False)
    """How passages are ranked; None if the encoder reads no passages."""
    throughput: Throughput = field(default_factory=Throughput, repr=False)
    """Measured in every call and used only with a deadline; it never changes a score."""

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str] = "",
        *,
        alpha: float | None = None,
        keeps: str = "",
        depth: int = 0,
        language: str = "",
    ) -> Cascade:
        """
        Load a model folder, or the shipped cascade, with its tuned schedule.

        `language` is `en` or `fr`. Without it, the shipped cascade looks at the question and the
        candidates, has French ones ranked by the French model, and ranks those of other languages
        by their words (`bm25`), with a LanguageWarning.

        In place of that schedule: `alpha` drops the same fraction after every classifier, `keeps`
        gives numbers (see `parse_keeps`), and `depth` alone runs the classifier at that depth only.
        Together with one of the others, `depth` is the last depth. For passages, `alpha` and
        `depth` mean the same, and `keeps`, which counts candidates, is not used.
        """
        if folder and language:
            raise InputError(f"Give a folder or a language, not both, got {language!r}.")
        return cls._load(CascadeOptions(fspath(folder), alpha, keeps, depth, language))

    @classmethod
    def _load(cls, options: CascadeOptions) -> Cascade:
        folder = options.folder or shipped_folder(options.language or "en")
        opened = ModelFolder.open(folder, kind=cls.name)
        encoder = load_encoder(opened)
        return cls(
            encoder,
            _choose_schedule(encoder, opened, options),
            read_calibration(opened.config),
            read_threshold(opened.config),
            options,
            _context_settings(encoder, opened, options),
        )

    @property
    def listwise(self) -> bool:
        return False

    @property
    def stops_at_deadline(self) -> bool:
        return True

    @property
    def batches_requests(self) -> bool:
        return True

    def for_language(self, language: str) -> Ranker | None:
        """The cascade for texts in that language; None if no model that ships can read it."""
        if self.options is None or not self.options.follows_language or language == "en":
            return self
        if language not in SHIPPED_LANGUAGES:
            return None
        try:
            found = _load_shipped(self.options._replace(language=language))
        except ModelError:  # a copy of askline without this model
            return self
        if self.context is None and self.encoder.context_depths:
            is_full_depth = self.schedule == self.full_depth.schedule
            return found.full_depth if is_full_depth else found.alone
        return found

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        """Pairs of all requests share batches; there is a report per classifier."""
        if self.options is not None and self.options.follows_language:
            rankers = rankers_by_language(self, requests)
            if any(ranker is not self for ranker in rankers):
                return run_each(rankers, requests, stop)
        admitted = self._admit_all(requests, stop)
        running = [place for place, own in enumerate(admitted) if own.positions]
        in_context = [place for place in running if self._in_context(admitted[place].request)]
        one_by_one = [place for place in running if place not in in_context]
        rankings = [Ranking((), (StageReport(str(self), 0, 0, 0.0),))] * len(admitted)
        found = self._run_passages([admitted[place].request for place in in_context], stop)
        start, ready = time.perf_counter(), self.encoder.parts_ready
        batch = _CascadeBatch(self, [admitted[place].request for place in one_by_one], start)
        for depth in batch.depths():
            rows, waiting = batch.rows_at(depth, interleave=stop is not None)
            if len(rows):
                batch.logits[rows] = batch.run.advance(rows, depth, stop=stop, waiting=waiting)
            batch.take_step(depth, stop)
        if batch.states and ready == self.encoder.parts_ready:  # no time went into new graphs
            self.throughput.update(batch.work(), time.perf_counter() - start)
        found += [state.ranking() for state in batch.states]
        for place, ranking in zip((*in_context, *one_by_one), found, strict=True):
            rankings[place] = ranking
        return [own.complete(part) for own, part in zip(admitted, rankings, strict=True)]

    def _run_passages(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        if self.context is None or not requests:
            return []
        start, ready = time.perf_counter(), self.encoder.parts_ready
        batch = PassageBatch(self.encoder, self.context, self.spec_at, requests)
        rankings = batch.run(stop)
        if ready == self.encoder.parts_ready:
            self.throughput.update(batch.work(), time.perf_counter() - start)
        return rankings

    def _in_context(self, request: Request) -> bool:
        return self.context is not None and request.context is not None

    @property
    def alone(self) -> Cascade:
        schedule = self.context.ask.schedule if self.context is not None else None
        return replace(self, schedule=schedule or self.schedule, context=None)

    @property
    def full_depth(self) -> Cascade:
        return replace(self, schedule=KeepCounts(self.encoder.depths[-1:]), context=None)

    def predict(self, pairs: Iterable[tuple[str, str]]) -> ScoreArray:
        """The probability of each pair at full depth, whatever the schedule."""
        return Ranker.predict(self.full_depth, pairs)

    def find_spans(self, question: str, texts: Sequence[str]) -> list[Span | None]:
        """What the reader points at inside each text, at full depth; None without a reader."""
        own = self.for_language(detect_language([question, *texts]))
        if own is not self:
            return own.find_spans(question, texts) if own is not None else [None] * len(texts)
        return self.encoder.begin(question, texts).read(np.arange(len(texts)))

    def find_request_spans(self, request: Request) -> list[Span | None]:
        """What the reader points at inside each text, read in its passage if there is one."""
        own = self.for_language(detect_language([request.question, *request.texts]))
        if own is not None and own is not self:
            return own.find_request_spans(request)
        if request.context is None or self.context is None:
            return self.find_spans(request.question, request.texts)
        passages = request.context.passages
        firsts = np.cumsum([0, *(len(passage.sentences) for passage in passages)])
        numbers = [firsts[passage] + sentence for passage, sentence in request.context.places]
        run = self.encoder.begin_passages([(request.question, passages)])
        return run.read(np.array(numbers, np.int64))

    def warm_up(self) -> None:
        """Build every layer and classifier, and measure the throughput, on made-up texts."""
        question, texts = _WARM_UP
        # A second round if graphs were built in the first, which then says nothing about speed.
        while self.throughput.seconds_per_unit is None:
            if self.context is not None:
                passages = self.encoder.begin_passages([(question, [Passage(texts)])])
                for depth in self.encoder.context_depths:
                    passages.advance(np.zeros(1, np.int64), depth)
            start, ready = time.perf_counter(), self.encoder.parts_ready
            run, rows = self.encoder.begin(question, texts), np.arange(len(texts))
            for depth in self.encoder.depths:
                run.advance(rows, depth)
            if ready == self.encoder.parts_ready:
                work = _count_characters(question, texts) * self.encoder.layers
                self.throughput.update(work, time.perf_counter() - start)

    def preload(self, *, passages: bool = False, keep_graphs: bool = False) -> None:
        steps: tuple[Step, ...] = self.schedule.plan(1)  # all layers, one classifier
        context_steps: tuple[Step, ...] = ()
        if passages and self.context is not None:
            ask = self.context.ask
            steps = (ask.schedule or self.schedule).plan(ask.sentences)
            context_steps = self.context.schedule.plan(ask.passages)
        self.encoder.load_in_background(
            [step.depth for step in steps],
            [step.depth for step in context_steps],
            keep_graphs=keep_graphs,
        )

    def probabilities(self, depth: int, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Calibrated probabilities from the logits of the classifier at `depth`."""
        return self.calibration.get(depth, UNCALIBRATED)(logits)

    def spec_at(self, depth: int) -> str:
        """The spec text of the classifier at `depth` alone."""
        if depth not in self._specs:
            options = self.options or CascadeOptions()
            own = CascadeOptions(options.folder, depth=depth, language=options.language)
            self._specs[depth] = str(own)
        return self._specs[depth]

    @cached_property
    def _specs(self) -> dict[int, str]:
        return {}

    def __str__(self) -> str:
        return str(self.options or CascadeOptions())

    def __reduce__(self) -> tuple[Callable[..., Cascade], tuple[CascadeOptions]]:
        options = self.options
        folder = folder_to_pickle(self, None if options is None else options.folder)
        return type(self)._load, ((options or CascadeOptions())._replace(folder=folder),)

    def _admit_all(self, requests: Sequence[Request], stop: Stop | None) -> list[_Admitted]:
        """Select the candidates that a deadline leaves time for; all of them without one."""
        capacity = math.inf
        if isinstance(stop, Deadline):
            capacity = self.throughput.capacity(stop.left / max(1, len(requests)))
        admitted = [
            _admit_passages(request, self.context.schedule, capacity)
            if self.context is not None and request.context is not None
            else _admit(request, self.schedule, capacity)
            for request in requests
        ]
        if 0 < capacity < math.inf and not any(own.positions for own in admitted):
            self.throughput.decay()
        return admitted


class _CascadeBatch:
    """Several requests in one run of the encoder, whose candidates are numbered consecutively."""

    def __init__(self, cascade: Cascade, requests: Sequence[Request], start: float) -> None:
        self.states: list[_CascadeState] = []
        self._requests = requests
        if not requests:
            return
        counts = [len(request.texts) for request in requests]
        self.run = cascade.encoder.begin_many([(own.question, own.texts) for own in requests])
        self.logits = np.full(sum(counts), np.nan, np.float32)
        """Of the current depth; NaN for candidates that have not been run."""
        self._offsets = np.cumsum([0, *counts])[:-1].tolist()
        tokens = np.split(self.run.tokens, np.cumsum(counts)[:-1])
        self.states += [
            _CascadeState(cascade, own, request.order, start)
            for request, own in zip(requests, tokens, strict=True)
        ]

    def depths(self) -> list[int]:
        """The depths at which at least one request has a step."""
        return sorted({depth for state in self.states for depth in state.steps})

    def rows_at(self, depth: int, *, interleave: bool) -> tuple[IntArray, IntArray | None]:
        """The candidates to run to `depth`, and those of requests without a step there."""
        rows, waiting = [np.empty(0, np.int64)], list[IntArray]()
        for offset, state in zip(self._offsets, self.states, strict=True):
            if state.has_ahead(depth):
                (rows if depth in state.steps else waiting).append(offset + state.left)
        own = _interleave(rows[1:]) if interleave and len(rows) > 1 else np.concatenate(rows)
        return own, np.concatenate(waiting) if waiting else None

    def take_step(self, depth: int, stop: Stop | None) -> None:
        """Let every request with a step at `depth` drop candidates by the logits."""
        for offset, state in zip(self._offsets, self.states, strict=True):
            if depth in state.steps:
                state.take(state.steps[depth], self.logits[offset + state.left], stop)
        self.logits[:] = np.nan

    def work(self) -> float:
        """Character-layers, as if the candidates that went deep were as long as the others."""
        total = 0.0
        for request, state in zip(self._requests, self.states, strict=True):
            cost = state.ranking().cost
            mean = _count_characters(request.question, request.texts) / len(request.texts)
            total += mean * (cost.candidate_layers if cost else 0)
        return total


class _CascadeState:
    """One request on its way down the depths. The candidates left stand best first, if known."""

    def __init__(
        self, cascade: Cascade, tokens: IntArray, order: Sequence[int] | None, start: float
    ) -> None:
        self.steps = {step.depth: step for step in cascade.schedule.plan(len(tokens))}
        self.left: IntArray = np.arange(len(tokens)) if order is None else np.asarray(order)
        self._cascade = cascade
        self._tokens = tokens
        self._probability = np.zeros(len(tokens))  # from the last classifier that scored it
        self._scored = np.zeros(len(tokens), bool)
        self._stage = 0  # the classifier that decided the order of those left
        self._depth = 0
        self._planned = len(self.left)  # how many would be left by now if time had not run out
        self._out_of_time = False
        self._dropped: list[Hit] = []
        self._reports: list[StageReport] = []
        self._since = start  # the first stage includes tokenizing

    def has_ahead(self, depth: int) -> bool:
        """Whether a step at this depth or a deeper one is still to be taken."""
        return not self._out_of_time and max(self.steps) >= depth

    def take(self, step: Step, logits: NDArray[np.float32], stop: Stop | None) -> None:
        """Drop what this step does not keep; `logits` are of those left, NaN if time was up."""
        if self._out_of_time:
            self._skip(step)
        else:
            self._score(step, logits, stop)
        self._planned = step.keep

    def ranking(self) -> Ranking:
        """The hits and reports; candidates that were never scored are at the end."""
        hits = (*self._hits(self.left), *self._dropped)
        return Ranking(hits, tuple(self._reports), int((~self._scored).sum()))

    def _score(self, step: Step, logits: NDArray[np.float32], stop: Stop | None) -> None:
        seen = ~np.isnan(logits)
        if stop is None and not seen.all():
            row = int(self.left[int(seen.argmin())])
            name = self._cascade.spec_at(step.depth)
            raise RankerError(f"{name} gave document {row} the score NaN.")
        reached = self.left[seen]
        self._probability[reached] = self._cascade.probabilities(step.depth, logits[seen])
        self._scored[reached] = True
        self._out_of_time = len(reached) < len(self.left)
        entered = len(self.left)
        if len(reached):
            self._stage = len(self._reports)
            self._sort()
        if not self._out_of_time:
            keep = step.keep
            if step.cutoff is not None:
                falling = np.sort(logits[seen])[::-1][:keep].tolist()
                keep = min(keep, step.cutoff.kept(falling))
            self._dropped = [*self._hits(self.left[keep:]), *self._dropped]
            self.left = self.left[:keep]
            self._leave_out_idle_steps(step.depth)
        self._report(step, entered, reached)
        self._depth = step.depth

    def _leave_out_idle_steps(self, depth: int) -> None:
        """Leave out the steps after `depth` that cannot drop any of those left."""
        last = max(self.steps)
        self.steps = {
            own: step
            for own, step in self.steps.items()
            if own <= depth
            or own == last
            or len(self.left) > (step.cutoff.keep if step.cutoff else step.keep)
        }

    def _sort(self) -> None:
        # Scored before unscored, then by probability, then as given. Where time ran out within a
        # depth, probabilities of two depths are compared, which calibration makes possible.
        keys = (self.left, -self._probability[self.left], ~self._scored[self.left])
        self.left = self.left[np.lexsort(keys)]

    def _hits(self, rows: IntArray) -> list[Hit]:
        scores = self._probability[rows].tolist()
        scored = self._scored[rows].tolist()
        return [
            Hit(row, score, self._stage, score if known else None)
            for row, score, known in zip(rows.tolist(), scores, scored, strict=True)
        ]

    def _report(self, step: Step, entered: int, reached: IntArray) -> None:
        now = time.perf_counter()
        layers, full = step.depth - self._depth, self._cascade.encoder.layers
        cost = Cost(
            layers * len(reached),
            layers * int(self._tokens[reached].sum()),
            full * len(self._tokens),
            full * int(self._tokens.sum()),
        )
        name, skipped = self._cascade.spec_at(step.depth), entered - len(reached)
        self._reports.append(
            StageReport(
                name,
                entered,
                len(self.left),
                now - self._since,
                skipped,
                cost,
                calibrated=True,
                depth=step.depth,
            )
        )
        self._since = now

    def _skip(self, step: Step) -> None:
        """Report a classifier that was not begun: none of the planned candidates was scored."""
        name, count = self._cascade.spec_at(step.depth), self._planned
        self._reports.append(
            StageReport(name, count, step.keep, 0.0, skipped=count, depth=step.depth)
        )


class _Admitted(NamedTuple):
    """The candidates of a request that a deadline leaves time for, and the others."""

    request: Request
    """With the admitted candidates alone, in the original order."""
    positions: Sequence[int]
    rest: Sequence[int]
    """Positions of the others, most promising first."""

    def complete(self, part: Ranking) -> Ranking:
        """The ranking of the admitted candidates, followed by the others, unscored."""
        if not self.rest:
            return part
        hits = [replace(hit, index=self.positions[hit.index]) for hit in part.hits]
        hits += [Hit(position, 0.0, 0) for position in self.rest]
        more, scale = len(self.rest), len(hits) / max(1, len(self.positions))
        first, *later = (
            replace(stage, cost=stage.cost and stage.cost.relative_to(scale))
            for stage in part.stages
        )
        first = replace(first, entered=first.entered + more, skipped=first.skipped + more)
        return Ranking(tuple(hits), (first, *later), part.unscored + more)


def _admit(request: Request, schedule: Schedule, capacity: float) -> _Admitted:
    """As many of the most promising candidates as `capacity` can take to full depth."""
    everyone = range(len(request.texts))
    order = list(everyone if request.order is None else request.order)
    sizes = [len(request.question) + len(request.texts[position]) for position in order]
    count = _affordable(schedule, sizes, capacity) if capacity < math.inf else len(order)
    if count == len(order):
        return _Admitted(request, everyone, ())
    return _admitted(request, order[:count], order[count:])


def _admit_passages(request: Request, schedule: Schedule, capacity: float) -> _Admitted:
    """As `_admit`, for whole passages: the one with the most promising sentence comes first."""
    everyone = range(len(request.texts))
    order = list(everyone if request.order is None else request.order)
    if capacity == math.inf or request.context is None:
        return _Admitted(request, everyone, ())
    owner = [number for number, _ in request.context.places]
    sizes = dict(zip(sorted({*owner}), passage_sizes(request), strict=True))
    passages = list(dict.fromkeys(owner[position] for position in order))
    count = _affordable(schedule, [sizes[number] for number in passages], capacity)
    if count == len(passages):
        return _Admitted(request, everyone, ())
    entering = set(passages[:count])
    return _admitted(
        request,
        [position for position in order if owner[position] in entering],
        [position for position in order if owner[position] not in entering],
    )


def _admitted(request: Request, entering: Sequence[int], rest: Sequence[int]) -> _Admitted:
    positions = sorted(entering)
    place = {position: own for own, position in enumerate(positions)}
    own_order = [place[position] for position in entering]
    return _Admitted(request.select(positions, own_order), positions, rest)


def _affordable(schedule: Schedule, sizes: Sequence[int], capacity: float) -> int:
    """How many candidates, in this order and of these sizes, `capacity` suffices for."""
    ends = np.cumsum(sizes)
    most, too_many = 0, len(sizes) + 1
    while too_many - most > 1:
        count = (most + too_many) // 2
        layers = candidate_layers(schedule.plan(count), count)
        if layers * ends[count - 1] / count <= capacity:
            most = count
        else:
            too_many = count
    return most


def _interleave(parts: Sequence[IntArray]) -> IntArray:
    """The most promising rows of each request first, so that time runs out on all alike."""
    shares = [np.arange(len(part)) / len(part) for part in parts]
    return np.asarray(np.concatenate(parts)[np.argsort(np.concatenate(shares), kind="stable")])


def shipped_folder(language: str = "en") -> Path:
    """The folder of the cascade that ships with askline, for texts in that language."""
    return shipped_model_folder(Cascade.name, language)


@cache
def _load_shipped(options: CascadeOptions) -> Cascade:
    """A shipped cascade of another language, loaded once per process."""
    return Cascade._load(options)


def _choose_schedule(
    encoder: LayerwiseEncoder, opened: ModelFolder, options: CascadeOptions
) -> Schedule:
    depths, all_depths = encoder.depths, {*encoder.depths, *encoder.context_depths}
    if options.depth and options.depth not in all_depths:
        known = ", ".join(map(str, sorted(all_depths)))
        raise InputError(
            f"depth must be one of {known}, where there are classifiers, got {options.depth}."
        )
    if options.alpha is not None and options.keeps:
        raise InputError("Give alpha or keeps, not both.")
    used = _depths_up_to(depths, options.depth)
    if options.alpha is not None:
        return DropFraction(used, options.alpha)
    if options.keeps:
        return KeepCounts(used, parse_keeps(options.keeps, used))
    tuned = opened.config.get("schedule")
    if options.depth or not tuned:
        return KeepCounts(used)
    return TunedSchedule.from_config(used, tuned)


def _context_settings(
    encoder: LayerwiseEncoder, opened: ModelFolder, options: CascadeOptions
) -> ContextSettings | None:
    entry = opened.config.get("context")
    if not entry:
        return None
    config = ContextConfig.from_entry(entry)
    settings = ContextSettings.from_config(config, encoder.depths)
    if options.alpha is not None or options.keeps or options.depth:  # instead of the folder's own
        settings = replace(settings, ask=replace(settings.ask, schedule=None))
    used = _depths_up_to(config.depths, options.depth)
    if options.alpha is not None:
        return replace(settings, schedule=DropFraction(used, options.alpha))
    return replace(settings, schedule=KeepCounts(used)) if options.depth else settings


def _depths_up_to(depths: Sequence[int], last: int) -> tuple[int, ...]:
    """The depths up to `last`, at least the first one; all of them if `last` is 0."""
    return tuple(depth for depth in depths if not last or depth <= last) or tuple(depths[:1])


def _count_characters(question: str, texts: Sequence[str]) -> int:
    return sum(len(question) + len(text) for text in texts)
