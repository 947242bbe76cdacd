"""
The base class of every ranker, and the composites that every ranker can be part of.

A ranker with one score per document implements `score_texts`. A ranker of several stages, or one
that can stop at a deadline, implements `run_batch`. All public methods follow from these two hooks.

`a % 20 >> b`, or `a.top(20).then(b)`, is a ranker too: of what `a` ranks, the best twenty go on to
`b`, in their original order, because some rankers read that order. `pipeline.py` has the rules.
"""

from __future__ import annotations

import os
import time
from abc import ABC
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from itertools import islice
from typing import ClassVar, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, RankerError
from ..types import Document, Hit, Ranking, Span, StageReport
from .context_cascade import ContextSettings
from .deadline import Deadline, Stop
from .pipeline import PipelineState
from .requests import (
    Request,
    ScoreArray,
    attach_documents,
    check_pair,
    check_request,
    check_top_k,
    read_request,
    sort_by_score,
)

__all__ = [
    "Cut",
    "FunctionRanker",
    "Pipeline",
    "Ranker",
    "WithDeadline",
    "folder_to_pickle",
    "spec_with_folder",
]


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Ranker(ABC):  # noqa: B024 - either hook may be implemented
    """
    Puts documents in order of how well they answer a question.

    Documents are strings, or mappings with their text under the key named by `text`. Their order
    carries meaning: documents with equal scores keep it, and some rankers read it. The same input
    gives the same hits, from any thread. `askline.testing` checks these rules for any ranker.

    A list of `Passage`s is ranked by sentences: `Hit.index` numbers the sentences of all passages
    in their order, `Hit.text` is the sentence and `Hit.document` its passage. By default each
    sentence is scored as an independent text; `reads_passages` says whether a ranker reads it in
    its passage.

    Subclasses are usually frozen dataclasses whose fields are the options of their spec text.
    """

    name: ClassVar[str] = ""
    """The name in a spec text, such as `bm25`."""

    # Hooks: what a ranker implements.

    def score_texts(self, question: str, texts: Sequence[str]) -> ArrayLike:
        """One score per text, in the order given; higher is better. `texts` is not empty."""
        raise NotImplementedError(f"{type(self).__name__} must implement score_texts or run_batch.")

    def run_batch(
        self,
        requests: Sequence[Request],
        stop: Stop | None,  # noqa: ARG002
    ) -> list[Ranking]:
        """
        Rank several requests: all their texts, best first, with a report per stage.

        `stop` is called between batches of work; once it returns True, no further batch is begun.
        The default scores one request after the other and cannot stop early.
        """
        rankings = []
        for request in requests:
            start, count = time.perf_counter(), len(request.texts)
            scores: ArrayLike = []
            if count:
                scores = self.score_texts(request.question, request.texts)
            rankings.append(self._ranking(scores, count, time.perf_counter() - start))
        return rankings

    def find_spans(self, question: str, texts: Sequence[str]) -> list[Span | None]:  # noqa: ARG002
        """The best answer span inside each text; None for all from a ranker that cannot read."""
        return [None] * len(texts)

    def find_request_spans(self, request: Request) -> list[Span | None]:
        """`find_spans` for the texts of a request; a ranker may read them in their passages."""
        return self.find_spans(request.question, request.texts)

    def warm_up(self) -> None:  # noqa: B027 - most rankers have nothing to prepare
        """Do now what the first question would otherwise wait for."""

    def preload(  # noqa: B027 - as `warm_up`
        self, *, passages: bool = False, keep_graphs: bool = False
    ) -> None:
        """
        Begin in a thread what the first question would otherwise wait for, and return at once.

        `passages` says that the first question will come with passages. `keep_graphs` keeps what is
        prepared in the user's cache folder, where the next process finds it. For programs that have
        other work to do before the first question, such as opening an index.
        """

    def for_language(self, language: str) -> Ranker | None:  # noqa: ARG002
        """
        The ranker for texts in a language, by its ISO 639-1 code; None if it cannot read them.

        Only rankers with a model per language return another one than themselves.
        """
        return self

    # Properties: what a ranker can do.

    @property
    def threshold(self) -> float | None:
        """The probability below which the best document is not an answer; None if uncalibrated."""
        return None

    @property
    def context(self) -> ContextSettings | None:
        """How the sentences of passages are ranked in context; None if they are not."""
        return None

    @property
    def reads_passages(self) -> bool:
        """Whether a sentence of a `Passage` is scored with the other sentences in sight."""
        return self.context is not None

    @property
    def alone(self) -> Ranker | None:
        """The same ranker for single sentences in `Corpus.ask`; None if it reads no passages."""
        return None

    @property
    def full_depth(self) -> Ranker | None:
        """The same ranker at full depth for sentences alone; None if it does not read passages."""
        return None

    @property
    def first_stage(self) -> Ranker | None:
        """The stages before the last one of a pipeline; None for other rankers."""
        return None

    @property
    def listwise(self) -> bool:
        """Whether a document's score depends on the other documents or on their order."""
        return True

    @property
    def stops_at_deadline(self) -> bool:
        """Whether `deadline_ms` can end a ranking early; if not, the ranker runs to its end."""
        return False

    @property
    def batches_requests(self) -> bool:
        """Whether documents of several requests share batches, so that `rank_many` saves time."""
        return False

    # Ranking.

    def rank(
        self,
        question: str,
        documents: Iterable[Document],
        *,
        text: str = "text",
        top_k: int | None = None,
        deadline_ms: float | None = None,
    ) -> list[Hit]:
        """
        Return every document exactly once, best first, or the best `top_k` of them.

        With `deadline_ms`, return the best ranking that is ready by then. Documents that no stage
        has scored come last, with the score 0.
        """
        limit = check_top_k(top_k)
        kept, request = read_request(question, documents, text)
        (ranking,) = self.run_batch([request], self._start_clock(deadline_ms))
        return attach_documents(ranking.hits[:limit], kept, request.texts)

    def rank_many(
        self,
        requests: Iterable[tuple[str, Iterable[Document]]],
        *,
        text: str = "text",
        top_k: int | None = None,
        deadline_ms: float | None = None,
    ) -> list[list[Hit]]:
        """
        Return what `rank` gives for each question and its documents.

        Rankers that can put documents of several questions into one batch do so. The deadline
        covers all requests together.
        """
        limit = check_top_k(top_k)
        rankings = self.trace_many(requests, text=text, deadline_ms=deadline_ms)
        return [list(ranking.hits[:limit]) for ranking in rankings]

    def rank_stream(
        self,
        requests: Iterable[tuple[str, Iterable[Document]]],
        *,
        text: str = "text",
        top_k: int | None = None,
        deadline_ms: float | None = None,
        batch_size: int = 8,
    ) -> Iterator[list[Hit]]:
        """
        Yield what `rank` gives for each request, in their order, as soon as its batch is ranked.

        Requests are read when they are needed, `batch_size` at a time, so there can be any number
        of them. With `batch_size=1`, each result comes as early as possible; larger batches save
        time in all with rankers that batch requests. The deadline is that of each batch.
        """
        check_top_k(top_k)
        _check_batch_size(batch_size)
        return self._stream(iter(requests), text, top_k, deadline_ms, batch_size)

    def trace(
        self,
        question: str,
        documents: Iterable[Document],
        *,
        text: str = "text",
        deadline_ms: float | None = None,
    ) -> Ranking:
        """Return the hits that `rank` gives, with counts, seconds and cost for each stage."""
        (ranking,) = self.trace_many([(question, documents)], text=text, deadline_ms=deadline_ms)
        return ranking

    def trace_many(
        self,
        requests: Iterable[tuple[str, Iterable[Document]]],
        *,
        text: str = "text",
        deadline_ms: float | None = None,
    ) -> list[Ranking]:
        """Return what `trace` gives for each question and its documents."""
        read = [
            read_request(*check_request(place, request), text)
            for place, request in enumerate(requests)
        ]
        rankings = self.run_batch([own for _, own in read], self._start_clock(deadline_ms))
        return [
            Ranking(
                tuple(attach_documents(ranking.hits, kept, request.texts)),
                ranking.stages,
                ranking.unscored,
            )
            for (kept, request), ranking in zip(read, rankings, strict=True)
        ]

    def score(
        self, question: str, documents: Iterable[Document], *, text: str = "text"
    ) -> ScoreArray:
        """
        Return the score that `rank` gives each document, in the order of the documents.

        In a pipeline, scores of different stages are not comparable; `Hit.stage` of `rank` says
        which stage a score comes from.
        """
        hits = self.rank(question, documents, text=text)
        scores = np.empty(len(hits))
        for hit in hits:
            scores[hit.index] = hit.score
        return scores

    def predict(self, pairs: Iterable[tuple[str, str]]) -> ScoreArray:
        """
        Return one score per (question, text) pair, independent of all other pairs.

        A pipeline scores with its last stage, a cascade at full depth. A ranker whose score depends
        on the other documents raises InputError.
        """
        if self.listwise:
            raise InputError(
                f"{self} scores a document in comparison with the other documents, so it cannot "
                "score pairs. Use rank or score, or a ranker such as cascade or jaccard."
            )
        listed = [check_pair(place, pair) for place, pair in enumerate(pairs)]
        by_question: dict[str, list[int]] = {}
        for place, (question, _) in enumerate(listed):
            by_question.setdefault(question, []).append(place)
        requests = [
            Request(question, [listed[place][1] for place in places])
            for question, places in by_question.items()
        ]
        scores = np.empty(len(listed))
        for places, ranking in zip(
            by_question.values(), self.run_batch(requests, None), strict=True
        ):
            for hit in ranking.hits:
                scores[places[hit.index]] = hit.score
        return scores

    def read(
        self, question: str, documents: Iterable[Document], *, text: str = "text"
    ) -> list[Span | None]:
        """
        Return the words inside each document that answer the question.

        None where the ranker cannot read, and where "no answer" is the better reading. This costs
        one more pass at full depth: call it for the few documents that are shown.
        """
        _, request = read_request(question, documents, text)
        spans = self.find_request_spans(request) if request.texts else []
        return [span if span and span.score > span.no_answer else None for span in spans]

    # Async twins: the same work in a thread, so that an event loop goes on.

    async def arank(
        self,
        question: str,
        documents: Iterable[Document],
        *,
        text: str = "text",
        top_k: int | None = None,
        deadline_ms: float | None = None,
    ) -> list[Hit]:
        """`rank` in a thread."""
        return await _in_thread(
            self.rank, question, documents, text=text, top_k=top_k, deadline_ms=deadline_ms
        )

    async def arank_many(
        self,
        requests: Iterable[tuple[str, Iterable[Document]]],
        *,
        text: str = "text",
        top_k: int | None = None,
        deadline_ms: float | None = None,
    ) -> list[list[Hit]]:
        """`rank_many` in a thread."""
        return await _in_thread(
            self.rank_many, requests, text=text, top_k=top_k, deadline_ms=deadline_ms
        )

    async def arank_stream(
        self,
        requests: Iterable[tuple[str, Iterable[Document]]],
        *,
        text: str = "text",
        top_k: int | None = None,
        deadline_ms: float | None = None,
        batch_size: int = 8,
    ) -> AsyncIterator[list[Hit]]:
        """`rank_stream`, each batch in a thread; requests are read in that thread too."""
        stream = self.rank_stream(
            requests, text=text, top_k=top_k, deadline_ms=deadline_ms, batch_size=batch_size
        )
        while (hits := await _in_thread(next, stream, None)) is not None:
            yield hits

    async def atrace(
        self,
        question: str,
        documents: Iterable[Document],
        *,
        text: str = "text",
        deadline_ms: float | None = None,
    ) -> Ranking:
        """`trace` in a thread."""
        return await _in_thread(self.trace, question, documents, text=text, deadline_ms=deadline_ms)

    async def awarm_up(self) -> None:
        """`warm_up` in a thread."""
        await _in_thread(self.warm_up)

    # Composition.

    def top(self, keep: int) -> Cut:
        """Rank as this ranker does; in a pipeline, pass only the best `keep` documents on."""
        return Cut(self, keep)

    def then(self, other: Ranker) -> Pipeline:
        """Let `other` rank what this ranker passes on."""
        return Pipeline((self, other))

    def __mod__(self, keep: int) -> Cut:
        return Cut(self, keep)

    def __rshift__(self, other: Ranker) -> Pipeline:
        return Pipeline((self, other))

    @staticmethod
    def from_function(
        function: Callable[[str, Sequence[str]], ArrayLike],
        *,
        name: str = "",
        threshold: float | None = None,
        listwise: bool = True,
    ) -> FunctionRanker:
        """
        Make a ranker of a function from a question and texts to one score per text.

        With a `threshold`, scores must be probabilities, and a best one below the threshold means
        that no document answers. `listwise=False` says that a score depends on its pair alone,
        which `predict` needs.
        """
        if not callable(function):
            raise InputError(f"Expected a function of a question and texts, got {function!r}.")
        return FunctionRanker(function, name or _function_name(function), threshold, listwise)

    def __str__(self) -> str:
        """Return the spec text, from which `askline.load` makes an equal ranker."""
        if not self.name:
            return type(self).__name__
        known: tuple[Field[object], ...] = fields(self) if is_dataclass(self) else ()
        options = [
            f"{option.name}={value}"
            for option in known
            if option.init and (value := getattr(self, option.name)) != option.default
        ]
        return f"{self.name}({', '.join(options)})" if options else self.name

    def _ranking(self, scores: ArrayLike, count: int, seconds: float) -> Ranking:
        """Scores of `count` texts as the ranking of one stage."""
        calibrated = self.threshold is not None
        hits = sort_by_score(scores, calibrated=calibrated)
        if len(hits) != count:
            raise RankerError(f"{self} must return {count} scores, one per text, got {len(hits)}.")
        report = StageReport(str(self), count, count, seconds, calibrated=calibrated)
        return Ranking(tuple(hits), (report,))

    def _stream(
        self,
        requests: Iterator[tuple[str, Iterable[Document]]],
        text: str,
        top_k: int | None,
        deadline_ms: float | None,
        batch_size: int,
    ) -> Iterator[list[Hit]]:
        while batch := list(islice(requests, batch_size)):
            yield from self.rank_many(batch, text=text, top_k=top_k, deadline_ms=deadline_ms)

    def _start_clock(self, deadline_ms: float | None) -> Deadline | None:
        """A deadline that begins once the ranker is warmed up."""
        if Deadline.after(deadline_ms) is None:
            return None
        self.warm_up()
        return Deadline.after(deadline_ms)


@dataclass(frozen=True, repr=False)
class FunctionRanker(Ranker):
    """A scoring function as a ranker; made by `Ranker.from_function`."""

    function: Callable[[str, Sequence[str]], ArrayLike]
    label: str
    threshold: float | None = field(default=None)
    listwise: bool = field(default=True)

    def score_texts(self, question: str, texts: Sequence[str]) -> ArrayLike:
        """What the function returns."""
        scores = np.asarray(self.function(question, texts), np.float64)
        if self.threshold is not None and not ((scores >= 0) & (scores <= 1)).all():
            raise RankerError(
                f"{self} has a threshold, so its scores must be probabilities from 0 to 1, got "
                f"{scores.min():g} to {scores.max():g}."
            )
        return scores

    def __str__(self) -> str:
        return self.label

    def __repr__(self) -> str:
        return f"<FunctionRanker {self.label}>"


class _Composite(Ranker):
    """A ranker whose scores, threshold and spans are those of its last stage."""

    @property
    def last(self) -> Ranker:
        """The stage whose scores come out at the end."""
        raise NotImplementedError

    @property
    def threshold(self) -> float | None:
        return self.last.threshold

    @property
    def context(self) -> ContextSettings | None:
        return self.last.context

    @property
    def alone(self) -> Ranker | None:
        return self.last.alone

    @property
    def full_depth(self) -> Ranker | None:
        return self.last.full_depth

    @property
    def first_stage(self) -> Ranker | None:
        return self.last.first_stage

    @property
    def listwise(self) -> bool:
        return self.last.listwise

    @property
    def stops_at_deadline(self) -> bool:
        return self.last.stops_at_deadline

    @property
    def batches_requests(self) -> bool:
        return self.last.batches_requests

    def for_language(self, language: str) -> Ranker | None:
        """The composite with each of its rankers for that language; None if one cannot read it."""
        parts = [part.for_language(language) for part in self._parts]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        same = all(new is old for new, old in zip(known, self._parts, strict=True))
        return self if same else self._with_parts(known)

    @property
    def _parts(self) -> Sequence[Ranker]:
        return (self.last,)

    def _with_parts(self, parts: Sequence[Ranker]) -> Ranker:
        """The same composite of other rankers."""
        raise NotImplementedError

    def predict(self, pairs: Iterable[tuple[str, str]]) -> ScoreArray:
        """Score with the last stage alone."""
        return self.last.predict(pairs)

    def find_spans(self, question: str, texts: Sequence[str]) -> list[Span | None]:
        """Spans from the last stage."""
        return self.last.find_spans(question, texts)

    def find_request_spans(self, request: Request) -> list[Span | None]:
        """Spans from the last stage."""
        return self.last.find_request_spans(request)


@dataclass(frozen=True)
class Cut(_Composite):
    """Ranks as its ranker does; in a pipeline, only the best `keep` documents go on."""

    ranker: Ranker
    keep: int

    def __post_init__(self) -> None:
        _check_ranker(self.ranker)
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 1:
            raise InputError(f"keep must be a positive integer, got {self.keep!r}.")

    @property
    def last(self) -> Ranker:
        return self.ranker

    def _with_parts(self, parts: Sequence[Ranker]) -> Ranker:
        return Cut(parts[0], self.keep)

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        """The whole rankings; the report of the last stage says how many are kept."""
        return [self.mark_kept(ranking) for ranking in self.ranker.run_batch(requests, stop)]

    def mark_kept(self, ranking: Ranking) -> Ranking:
        """The ranking with the cut in the report of its last stage."""
        *earlier, last = ranking.stages
        last = replace(last, ranker=f"{last.ranker} % {self.keep}", kept=min(self.keep, last.kept))
        return Ranking(ranking.hits, (*earlier, last), ranking.unscored)

    def warm_up(self) -> None:
        self.ranker.warm_up()

    def preload(self, *, passages: bool = False, keep_graphs: bool = False) -> None:
        self.ranker.preload(passages=passages, keep_graphs=keep_graphs)

    def __str__(self) -> str:
        several = isinstance(self.ranker, Pipeline) and len(self.ranker.stages) > 1
        return f"({self.ranker}) % {self.keep}" if several else f"{self.ranker} % {self.keep}"


@dataclass(frozen=True)
class Pipeline(_Composite):
    """Stages in sequence: each ranks what the one before it passed on."""

    stages: tuple[Ranker, ...]

    def __post_init__(self) -> None:
        flat: list[Ranker] = []
        for stage in self.stages:
            _check_ranker(stage)
            flat.extend(stage.stages if isinstance(stage, Pipeline) else (stage,))
        if not flat:
            raise InputError("A pipeline needs at least one ranker, got an empty sequence.")
        object.__setattr__(self, "stages", tuple(flat))

    @property
    def last(self) -> Ranker:
        return self.stages[-1]

    @property
    def _parts(self) -> Sequence[Ranker]:
        return self.stages

    def _with_parts(self, parts: Sequence[Ranker]) -> Ranker:
        return Pipeline(tuple(parts))

    @property
    def first_stage(self) -> Ranker | None:
        earlier = self.stages[:-1]
        if len(earlier) != 1:
            return Pipeline(earlier) if earlier else None
        return earlier[0].ranker if isinstance(earlier[0], Cut) else earlier[0]

    @property
    def stops_at_deadline(self) -> bool:
        return True  # between stages

    @property
    def batches_requests(self) -> bool:
        return any(stage.batches_requests for stage in self.stages)

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        """
        The survivors of all stages first, then what each stage dropped, latest stage first.

        A cut that would keep all documents is not run: the next stage scores them again, in the
        original order. With a deadline it is run, because its order decides who is scored first.
        """
        states = [PipelineState(request) for request in requests]
        for place, stage in enumerate(self.stages):
            ranker, keep = (stage.ranker, stage.keep) if isinstance(stage, Cut) else (stage, None)
            late = place > 0 and stop is not None and stop()
            may_skip = keep is not None and stop is None and stage is not self.stages[-1]
            running = list[PipelineState]()
            for state in states:
                if late:
                    state.skip(str(stage), out_of_time=True)
                elif may_skip and len(state.survivors) <= (keep or 0):
                    state.skip(str(stage), out_of_time=False)
                else:
                    running.append(state)
            parts = ranker.run_batch([state.next_request() for state in running], stop)
            for state, part in zip(running, parts, strict=True):
                state.update(stage.mark_kept(part) if isinstance(stage, Cut) else part, keep=keep)
        return [state.ranking() for state in states]

    def warm_up(self) -> None:
        for stage in self.stages:
            stage.warm_up()

    def preload(self, *, passages: bool = False, keep_graphs: bool = False) -> None:
        for stage in self.stages:
            stage.preload(passages=passages, keep_graphs=keep_graphs)

    def __str__(self) -> str:
        return " >> ".join(map(str, self.stages))


@dataclass(frozen=True)
class WithDeadline(_Composite):
    """A ranker with a deadline of its own, for callers that do not give one."""

    ranker: Ranker
    deadline_ms: float

    def __post_init__(self) -> None:
        _check_ranker(self.ranker)
        Deadline.after(self.deadline_ms)

    @property
    def last(self) -> Ranker:
        return self.ranker

    def _with_parts(self, parts: Sequence[Ranker]) -> Ranker:
        return WithDeadline(parts[0], self.deadline_ms)

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        """The best rankings ready by the earlier of the two deadlines."""
        self.ranker.warm_up()
        own = Deadline.after(self.deadline_ms)
        return self.ranker.run_batch(requests, own.or_earlier(stop) if own else stop)

    def warm_up(self) -> None:
        self.ranker.warm_up()

    def preload(self, *, passages: bool = False, keep_graphs: bool = False) -> None:
        self.ranker.preload(passages=passages, keep_graphs=keep_graphs)

    def __str__(self) -> str:
        return f"{self.ranker} within {self.deadline_ms:g} ms"


def spec_with_folder(name: str, folder: str | None, options: str = "") -> str:
    """The spec text of a ranker that was loaded from a folder, or that ships with askline."""
    inside = ", ".join(filter(None, [repr(folder) if folder else "", options]))
    return f"{name}({inside})" if inside else name


def folder_to_pickle(ranker: Ranker, folder: str | None) -> str:
    """The folder that another process loads the ranker from; empty for a shipped model."""
    if folder is None:
        raise TypeError(
            f"{type(ranker).__name__} can only be pickled if it was made by load(), because a "
            "pickle holds the folder and not the weights."
        )
    return os.path.abspath(folder) if folder else ""


async def _in_thread(
    function: Callable[_Parameters, _Result],
    *args: _Parameters.args,
    **kwargs: _Parameters.kwargs,
) -> _Result:
    import asyncio  # 30 ms, which programs without an event loop need not spend

    return await asyncio.to_thread(function, *args, **kwargs)


def _check_batch_size(batch_size: object) -> None:
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InputError(f"batch_size must be a positive integer, got {batch_size!r}.")


def _check_ranker(ranker: object) -> None:
    if not isinstance(ranker, Ranker):
        raise InputError(
            f"A stage must be a Ranker, got {type(ranker).__name__}. A scoring function becomes "
            "one by Ranker.from_function(function)."
        )


def _function_name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", type(function).__name__)
