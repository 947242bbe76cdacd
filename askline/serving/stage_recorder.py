"""Record the score and rank that each stage of a ranker gave each candidate, for `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..engine.layerwise import LayerwiseEncoder, LayerwiseRun, PassageRun
from ..rankers.base import Cut, Pipeline, Ranker
from ..rankers.cascade import Cascade
from ..rankers.context_cascade import ContextSettings
from ..rankers.deadline import Stop
from ..rankers.requests import Request
from ..types import Hit, Passage, Ranking, Span

__all__ = [
    "StageRecorder",
    "StageScore",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class StageScore:
    """The score and rank that one stage gave one candidate."""

    stage: int
    score: float
    rank: int
    """Rank within the stage, from 1."""


class _IndexedText(str):
    """A candidate with its index in the caller's list, which it keeps from stage to stage."""

    __slots__ = ("index_in_list",)
    index_in_list: int


class StageRecorder(Ranker):
    """
    A ranker that returns what the wrapped ranker returns and records the scores of its stages.

    It keeps the record of the last question only, so an instance serves one question.
    """

    def __init__(self, ranker: Ranker, time_is_up: Stop | None = None) -> None:
        self._recorders: list[_LeafRecorder] = []
        self._ranker = self._with_recorders(ranker)
        self._wrapped = ranker
        self._time_is_up = time_is_up
        self._alone: StageRecorder | None = None
        self.ranking = Ranking((), ())

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        """Rank one request until `stop`, or until the deadline given at construction."""
        (request,) = requests
        texts = [_indexed(text, index) for index, text in enumerate(request.texts)]
        own = request._replace(texts=texts)
        (self.ranking,) = self._ranker.run_batch([own], stop or self._time_is_up)
        return [self.ranking]

    def stage_scores(self) -> dict[int, list[StageScore]]:
        """Return the scores by candidate index, earlier stages first."""
        scores: dict[int, list[StageScore]] = {}
        first_stage = 0
        for recorder in self._recorders:
            for hits in recorder.scored:
                for rank, hit in enumerate(hits, start=1):
                    score = StageScore(first_stage + hit.stage, hit.score, rank)
                    scores.setdefault(hit.index, []).append(score)
            first_stage += recorder.stages
        return scores

    def scores_alone(self) -> dict[int, list[StageScore]]:
        """As `stage_scores`, of the sentences that `alone` has ranked; empty if it has not."""
        return {} if self._alone is None else self._alone.stage_scores()

    def __str__(self) -> str:
        return str(self._wrapped)

    @property
    def context(self) -> ContextSettings | None:
        return self._wrapped.context

    @property
    def first_stage(self) -> Ranker | None:
        return self._wrapped.first_stage

    @property
    def alone(self) -> Ranker | None:
        """A recorder of its own, with the same deadline."""
        ranker = self._wrapped.alone
        self._alone = None if ranker is None else StageRecorder(ranker, self._time_is_up)
        return self._alone

    @property
    def full_depth(self) -> Ranker | None:
        is_late = self._time_is_up is not None and self._time_is_up()
        return None if is_late else self._wrapped.full_depth

    @property
    def threshold(self) -> float | None:
        return self._wrapped.threshold

    def _with_recorders(self, ranker: Ranker) -> Ranker:
        """Rebuild the ranker with a recorder around each of its leaves."""
        if isinstance(ranker, Pipeline):
            return Pipeline(tuple(self._with_recorders(stage) for stage in ranker.stages))
        if isinstance(ranker, Cut):
            return Cut(self._with_recorders(ranker.ranker), ranker.keep)
        recorder = _LeafRecorder(ranker)
        self._recorders.append(recorder)
        return recorder


class _LeafRecorder(Ranker):
    """A leaf ranker that keeps its hits, with candidates numbered as in the whole list."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker
        self.scored: list[list[Hit]] = []
        """Hits per stage, best first. Only a cascade has more than one stage."""
        self.stages = 1

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        if not requests:
            return []
        (request,) = requests
        texts = request.texts
        if isinstance(self.ranker, Cascade):
            encoder = _RecordingEncoder(self.ranker, request)
            (ranking,) = replace(self.ranker, encoder=encoder).run_batch(requests, stop)
            scored, texts = encoder.scored, encoder.started
        else:
            (ranking,) = self.ranker.run_batch(requests, stop)
            scored = [list(ranking.hits[: len(ranking.hits) - ranking.unscored])]
        self.stages = len(ranking.stages)
        self.scored = [
            [replace(hit, index=_index_in_list(texts[hit.index], hit.index)) for hit in hits]
            for hits in scored
        ]
        return [ranking]

    def __str__(self) -> str:
        return str(self.ranker)


class _RecordingEncoder(LayerwiseEncoder, LayerwiseRun):
    """The encoder of a cascade that records the output of each classifier, for one question."""

    def __init__(self, cascade: Cascade, request: Request) -> None:
        self._cascade = cascade
        self._request = request
        self._run: LayerwiseRun
        self.started: Sequence[str] = ()
        """The candidates that `scored` numbers. Under a deadline not all of them may be started."""
        self.scored: list[list[Hit]] = []

    @property
    def depths(self) -> tuple[int, ...]:
        return self._cascade.encoder.depths

    @property
    def context_depths(self) -> tuple[int, ...]:
        return self._cascade.encoder.context_depths

    @property
    def reads_in_context(self) -> bool:
        return self._cascade.encoder.reads_in_context

    def begin_passages(self, requests: Sequence[tuple[str, Sequence[Passage]]]) -> PassageRun:
        run = self._cascade.encoder.begin_passages(requests)
        ((_, passages),) = requests
        recording = _RecordingPassageRun(self._cascade, run, self._request, passages)
        self.started, self.scored = self._request.texts, recording.scored
        return recording

    def begin(self, question: str, candidates: Sequence[str]) -> LayerwiseRun:
        self._run, self.started = self._cascade.encoder.begin(question, candidates), candidates
        return self

    @property
    def tokens(self) -> IntArray:
        return self._run.tokens

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Stop | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        logits = self._run.advance(rows, depth, stop=stop, waiting=waiting)
        is_reached = ~np.isnan(logits)
        reached = rows[is_reached]
        probabilities = self._cascade.probabilities(depth, logits[is_reached])
        best = np.lexsort((reached, -probabilities))  # ties keep the original order
        stage = len(self.scored)
        self.scored.append([Hit(int(reached[at]), float(probabilities[at]), stage) for at in best])
        return logits

    def read(self, rows: IntArray) -> list[Span | None]:
        return self._run.read(rows)


class _RecordingPassageRun(PassageRun):
    """The run of a cascade over passages, with hits that number the texts of the request."""

    def __init__(
        self, cascade: Cascade, run: PassageRun, request: Request, passages: Sequence[Passage]
    ) -> None:
        self._cascade, self._run = cascade, run
        self.scored: list[list[Hit]] = []
        assert request.context is not None
        text_of = {place: text for text, place in enumerate(request.context.places)}
        # The run has some of the request's passages, in their order.
        given = enumerate(request.context.passages)
        texts = list[int]()
        for passage in passages:
            number = next(number for number, one in given if one is passage)
            texts += [text_of.get((number, at), -1) for at in range(len(passage.sentences))]
        self._texts = np.array(texts, np.int64)  # per sentence of the run; -1 is context only

    @property
    def tokens(self) -> IntArray:
        return self._run.tokens

    def advance(
        self,
        passages: IntArray,
        depth: int,
        *,
        stop: Stop | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        logits = self._run.advance(passages, depth, stop=stop, waiting=waiting)
        is_reached = ~np.isnan(logits) & (self._texts >= 0)
        reached, stage = self._texts[is_reached], len(self.scored)
        assert self._cascade.context is not None
        probabilities = self._cascade.context.probabilities(depth, logits[is_reached])
        best = np.lexsort((reached, -probabilities))  # ties keep the original order
        self.scored.append([Hit(int(reached[at]), float(probabilities[at]), stage) for at in best])
        return logits

    def read(self, sentences: IntArray) -> list[Span | None]:
        return self._run.read(sentences)


def _indexed(text: str, index: int) -> _IndexedText:
    indexed = _IndexedText(text)
    indexed.index_in_list = index
    return indexed


def _index_in_list(text: str, default: int) -> int:
    return text.index_in_list if isinstance(text, _IndexedText) else default
