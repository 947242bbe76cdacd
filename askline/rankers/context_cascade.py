"""
A cascade over passages: sentences are scored in context, and passages leave early.

At each depth of the schedule, the score of a passage is that of its best sentence. The best
passages go deeper; the sentences of a passage that leaves keep the place and the probability that
this depth gave them. Sentences that an earlier stage of a pipeline has dropped are read and not
scored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.layerwise import LayerwiseEncoder
from ..errors import ModelError, RankerError
from ..models.cascade_config import ContextConfig
from ..types import Cost, Hit, Ranking, Span, StageReport
from .deadline import Stop
from .probability import (
    UNCALIBRATED,
    AnswerCalibration,
    LogitCalibration,
    TwoReadings,
    read_answer_calibration,
    read_calibration,
    read_threshold,
    read_two_readings,
)
from .requests import PassageTexts, Request
from .schedule import KeepCounts, Schedule, Step

__all__ = ["AskSettings", "ContextSettings", "PassageBatch", "passage_sizes"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AskSettings:
    """
    How `Corpus.ask` reads what was retrieved: sentences alone first, then passages in context.

    All sentences are read alone by a cascade. The passages of the best are read in context. The
    order of the answers follows both readings and the retrieval.
    """

    sentences: int = 60
    """How many of the retrieved sentences are read alone, the most promising ones."""
    schedule: Schedule | None = None
    """How many sentences are kept at each depth; None: as in `rank`."""
    passages: int = 2
    """How many passages are read in context."""
    more: int = 3
    """How many more sentences of these passages are read alone to the last depth."""
    answer: Mapping[int, AnswerCalibration] = field(default_factory=dict)
    """By depth, the log odds of a sentence that was read alone up to it."""
    both: TwoReadings = field(default_factory=TwoReadings)
    """The log odds of a sentence that was read alone to the last depth."""
    threshold: float | None = None
    """The probability below which there is no answer; None: that of the ranker."""

    @classmethod
    def from_config(cls, entry: Mapping[str, Any], depths: Sequence[int]) -> AskSettings:
        """Read the entry `ask` of a context; `depths` are those of single sentences."""
        try:
            counts = {
                name: int(entry[name])
                for name in ("sentences", "passages", "more")
                if name in entry
            }
            for name, count in counts.items():
                if count < (name != "more"):
                    raise ValueError(f"{name} must be positive, got {count}")
            keeps = tuple(Step(int(depth), int(keep)) for depth, keep in entry["keeps"].items())
            schedule = KeepCounts(tuple(depths), keeps)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelError(
                'ask must have the form {"sentences": 60, "keeps": {"2": 30}, "passages": 2, '
                f'"more": 3, "answer": {{…}}, "both": {{…}}}}, with depths out of {list(depths)}: '
                f"{error}"
            ) from error
        return cls(
            **counts,
            schedule=schedule,
            answer=read_answer_calibration(entry.get("answer") or {}),
            both=read_two_readings(entry.get("both") or {}),
            threshold=read_threshold(entry) if "threshold" in entry else None,
        )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What the `context` of a model folder says about ranking."""

    schedule: Schedule
    """How many passages are kept at each depth, by the number of passages."""
    calibration: Mapping[int, LogitCalibration] = field(default_factory=dict)
    """By depth; for a depth without one, the probability is the sigmoid of the logit."""
    ask: AskSettings = field(default_factory=AskSettings)

    @classmethod
    def from_config(cls, context: ContextConfig, depths: Sequence[int]) -> ContextSettings:
        """Read `keeps`, `calibration` and `ask`; each may be absent."""
        entries = context.ranking
        try:
            found = (entries.get("keeps") or {}).items()
            keeps = tuple(Step(int(depth), int(keep)) for depth, keep in found)
            counts = KeepCounts(context.depths, keeps)
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelError(
                'keeps of a context must have the form {"4": 8}, '
                f"with depths out of {list(context.depths)}: {error}"
            ) from error
        asking = entries.get("ask")
        ask = AskSettings.from_config(asking, depths) if asking else AskSettings()
        return cls(counts, read_calibration(entries), ask)

    def probabilities(self, depth: int, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Calibrated probabilities from the logits of the classifier at `depth`."""
        return self.calibration.get(depth, UNCALIBRATED)(logits)


class PassageBatch:
    """Several requests with passages in one run of the encoder."""

    def __init__(
        self,
        encoder: LayerwiseEncoder,
        settings: ContextSettings,
        spec_at: Callable[[int], str],
        requests: Sequence[Request],
    ) -> None:
        """`spec_at` names the classifier at a depth in the reports."""
        self._encoder = encoder
        self._start = time.perf_counter()
        self._requests = requests
        self.states: list[_PassageState] = []
        if not requests:
            return
        groups = [_passages_with_texts(request) for request in requests]
        pairs = [
            (request.question, [_context(request).passages[number] for number in numbers])
            for request, numbers in zip(requests, groups, strict=True)
        ]
        self._run = encoder.begin_passages(pairs)
        first_passage = first_sentence = 0
        for request, numbers, (_, passages) in zip(requests, groups, pairs, strict=True):
            sizes = [len(passage.sentences) for passage in passages]
            firsts = first_sentence + np.cumsum([0, *sizes])
            place = {number: at for at, number in enumerate(numbers)}
            owner = [place[number] for number, _ in _context(request).places]
            within = [sentence for _, sentence in _context(request).places]
            tokens = self._run.tokens[first_passage : first_passage + len(passages)]
            self.states.append(
                _PassageState(
                    settings,
                    spec_at,
                    encoder.context_depths[-1],
                    first_passage,
                    np.array(owner, np.int64),
                    firsts[owner] + np.array(within, np.int64),
                    tokens,
                    request.order,
                    self._start,
                )
            )
            first_passage += len(passages)
            first_sentence = int(firsts[-1])

    def run(self, stop: Stop | None) -> list[Ranking]:
        """Take all requests through their steps."""
        for depth in sorted({depth for state in self.states for depth in state.steps}):
            rows, waiting = list[IntArray](), list[IntArray]()
            for state in self.states:
                if state.has_ahead(depth):
                    group = rows if depth in state.steps else waiting
                    group.append(state.first_passage + state.left)
            logits = np.full(0, np.nan, np.float32)
            if rows:
                logits = self._run.advance(
                    np.concatenate(rows),
                    depth,
                    stop=stop,
                    waiting=np.concatenate(waiting) if waiting else None,
                )
            for state in self.states:
                if depth in state.steps:
                    state.take(state.steps[depth], logits, stop)
        return [state.ranking(self._spans(state)) for state in self.states]

    def work(self) -> float:
        """Character-layers, as if the passages that went deep were as long as the others."""
        total = 0.0
        for request, state in zip(self._requests, self.states, strict=True):
            sizes = passage_sizes(request)
            total += state.token_share() * sum(sizes) * self._encoder.context_depths[-1]
        return total

    def _spans(self, state: _PassageState) -> dict[int, Span]:
        """The spans of the sentences whose passages reached the last layer, by text."""
        texts = state.fully_read()
        if not self._encoder.reads_in_context or not len(texts):
            return {}
        spans = self._run.read(state.sentences[texts])
        return {
            text: span for text, span in zip(texts.tolist(), spans, strict=True) if span is not None
        }


class _PassageState:
    """One request on its way down the depths. The passages left stand best first, if known."""

    def __init__(
        self,
        settings: ContextSettings,
        spec_at: Callable[[int], str],
        full_depth: int,
        first_passage: int,
        owner: IntArray,
        sentences: IntArray,
        tokens: IntArray,
        order: Sequence[int] | None,
        start: float,
    ) -> None:
        """`owner` has the passage of each text, `sentences` its number in the encoder's run."""
        self.first_passage = first_passage
        self.sentences = sentences
        self.steps = {step.depth: step for step in settings.schedule.plan(len(tokens))}
        self.left: IntArray = _first_seen(owner if order is None else owner[list(order)])
        self._settings = settings
        self._spec_at = spec_at
        self._full_depth = full_depth
        self._owner = owner
        self._tokens = tokens
        self._probability = np.zeros(len(owner))  # from the last classifier that scored it
        self._scored = np.zeros(len(owner), bool)
        self._stage = 0  # the classifier that decided the order of those left
        self._depth = 0
        self._read = np.zeros(len(tokens), bool)  # passages that reached the last depth
        self._out_of_time = False
        self._decided = np.zeros(len(tokens), np.int64)  # the stage that dropped each passage
        self._order = np.arange(len(owner)) if order is None else np.asarray(order)
        self._reports: list[StageReport] = []
        self._since = start  # the first stage includes tokenizing

    def has_ahead(self, depth: int) -> bool:
        """Whether a step at this depth or a deeper one is still to be taken."""
        return not self._out_of_time and max(self.steps) >= depth

    def take(self, step: Step, logits: NDArray[np.float32], stop: Stop | None) -> None:
        """Drop what this step does not keep; `logits` are of all sentences of the run."""
        if not self._out_of_time:
            self._score(step, logits[self.sentences], stop)
            return
        name, count = self._spec_at(step.depth), int(np.isin(self._owner, self.left).sum())
        self._reports.append(
            StageReport(name, count, count, 0.0, skipped=count, depth=step.depth, in_context=True)
        )

    def fully_read(self) -> IntArray:
        """The texts of passages that reached the last depth."""
        return np.flatnonzero(self._read[self._owner])

    def token_share(self) -> float:
        """Token-layers as a share of full depth."""
        costs = [report.cost for report in self._reports if report.cost is not None]
        full = self._full_depth * max(1, int(self._tokens.sum()))
        return sum(cost.token_layers for cost in costs) / full

    def ranking(self, spans: Mapping[int, Span]) -> Ranking:
        """The hits and reports; sentences that were never scored are at the end."""
        hits = list[Hit]()
        self._decided[self.left] = self._stage
        for stage in sorted({*self._decided.tolist()}, reverse=True):
            hits += self._hits(self._sorted(self._decided[self._owner] == stage), stage, spans)
        return Ranking(tuple(hits), tuple(self._reports), int((~self._scored).sum()))

    def _score(self, step: Step, logits: NDArray[np.float32], stop: Stop | None) -> None:
        inside = np.isin(self._owner, self.left)
        seen = inside & ~np.isnan(logits)
        if stop is None and not seen[inside].all():
            text = int(np.flatnonzero(inside & ~seen)[0])
            raise RankerError(f"{self._spec_at(step.depth)} gave sentence {text} the score NaN.")
        self._probability[seen] = self._settings.probabilities(step.depth, logits[seen])
        self._scored |= seen
        reached = self.left[np.isin(self.left, self._owner[seen])]
        self._out_of_time = len(reached) < len(self.left)
        if len(reached):
            self._stage = len(self._reports)
            self._sort_passages()
        if step.depth == self._full_depth:
            self._read[reached] = True
        entered = int(inside.sum())
        if not self._out_of_time and step.keep < len(self.left):
            self._decided[self.left[step.keep :]] = self._stage
            self.left = self.left[: step.keep]
        self._report(step, entered, int(seen.sum()), reached)
        self._depth = step.depth

    def _sort_passages(self) -> None:
        """Scored before unscored, then by the best sentence, then as given."""
        best = np.full(len(self._tokens), -1.0)
        np.maximum.at(best, self._owner, np.where(self._scored, self._probability, -1.0))
        self.left = self.left[np.lexsort((self.left, -best[self.left]))]

    def _sorted(self, inside: NDArray[np.bool_]) -> IntArray:
        """These texts: scored before unscored, then by probability, then as given."""
        texts = np.flatnonzero(inside)
        if not self._scored[texts].any():  # as the stage before left them
            return self._order[inside[self._order]]
        keys = (texts, -self._probability[texts], ~self._scored[texts])
        return texts[np.lexsort(keys)]

    def _hits(self, texts: IntArray, stage: int, spans: Mapping[int, Span]) -> list[Hit]:
        scores, scored = self._probability[texts].tolist(), self._scored[texts].tolist()
        return [
            Hit(text, score, stage, score if known else None, span=spans.get(text))
            for text, score, known in zip(texts.tolist(), scores, scored, strict=True)
        ]

    def _report(self, step: Step, entered: int, seen: int, reached: IntArray) -> None:
        now = time.perf_counter()
        layers, full = step.depth - self._depth, self._full_depth
        cost = Cost(
            layers * seen,
            layers * int(self._tokens[reached].sum()),
            full * len(self._owner),
            full * int(self._tokens.sum()),
        )
        kept = int(np.isin(self._owner, self.left).sum())
        self._reports.append(
            StageReport(
                self._spec_at(step.depth),
                entered,
                kept,
                now - self._since,
                entered - seen,
                cost,
                calibrated=True,
                depth=step.depth,
                in_context=True,
            )
        )
        self._since = now


def passage_sizes(request: Request) -> list[int]:
    """The characters of each passage with a text, question included, by `_passages_with_texts`."""
    passages, question = _context(request).passages, len(request.question)
    return [
        question
        + len(passages[number].title)
        + sum(len(sentence) for sentence in passages[number].sentences)
        for number in _passages_with_texts(request)
    ]


def _passages_with_texts(request: Request) -> list[int]:
    """The passages that have a text in the request, ascending."""
    return sorted({number for number, _ in _context(request).places})


def _context(request: Request) -> PassageTexts:
    assert request.context is not None
    return request.context


def _first_seen(values: IntArray) -> IntArray:
    """The distinct values, in the order of their first appearance."""
    distinct, first = np.unique(values, return_index=True)
    return np.asarray(distinct[np.argsort(first, kind="stable")])
