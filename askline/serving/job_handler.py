"""
What a worker does with jobs: select an allowed ranker, check the size, execute the task.

Jobs that rank and score are executed here, and those about an index or documents in `corpus_jobs`.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from ..corpus import Corpus
from ..corpus.connectors import ServerUrl
from ..corpus.storage import is_postgres_url
from ..engine.encoder import OnnxEncoder
from ..engine.tokenizer import WordPiece
from ..errors import AsklineError, SpecError, unknown_name_message
from ..rankers.base import Cut, Pipeline, Ranker, WithDeadline
from ..rankers.cascade import Cascade
from ..rankers.probability import calibrated_stages, log_odds, ranking_relevance
from ..rankers.registry import DEFAULT_SPEC
from ..rankers.spec import load
from ..text.words import split_words
from ..types import Ranking
from . import corpus_jobs
from .common_schemas import ModelSchema
from .corpus_jobs import NotFoundError, RemoteRetriever
from .messages import (
    AddJob,
    AskJob,
    JobError,
    JobFailure,
    JobOutcome,
    JobRequest,
    JobResult,
    ListJob,
    RankJob,
    RankResult,
    RemoveJob,
    ScoreJob,
    ScoreResult,
    WorkerConfig,
    WorkerReady,
)

__all__ = [
    "BUILT_IN_RANKERS",
    "RANKERS_WITH_WEIGHTS",
    "AllowedRankers",
    "JobHandler",
    "TooManyTokensError",
    "count_tokens",
]

_PUNCTUATION = re.compile(r"[^\w\s]")
_ABSOLUTE_PATH = re.compile(r"(?<![\w:/.])(?:/[^\s/:;,'\"()]+){2,}|\b[A-Za-z]:\\[^\s:;,'\"()]+")
_log = logging.getLogger(__name__)


class TooManyTokensError(JobError):
    """The texts of a request have more tokens than the service accepts."""

    status = 413


class JobHandler:
    """The rankers and the index of one worker process."""

    def __init__(
        self,
        rankers: AllowedRankers,
        index: Corpus | RemoteRetriever | None,
        *,
        max_tokens: int,
        batch_size: int,
        index_folder: str | None = None,
    ) -> None:
        self._rankers = rankers
        self._index = index
        self._index_folder = index_folder
        self._max_tokens = max_tokens
        self.batch_size = batch_size if rankers.default.batches_requests else 1

    @classmethod
    def load(cls, config: WorkerConfig) -> JobHandler:
        """
        Load and warm up the rankers and open the index, which is created if missing.

        The span reader is warmed up too, so that the first question does not wait for it.
        """
        rankers = AllowedRankers(config.models or [DEFAULT_SPEC])
        index = _open_index(config)
        for spec in rankers.models:
            ranker = rankers.find(spec)
            ranker.rank("Which lamp burns?", ["The lamp burns.", "It rains."])
            ranker.warm_up()
            ranker.read("Which lamp burns?", ["The lamp burns."])
        return cls(
            rankers,
            index,
            max_tokens=config.max_tokens,
            batch_size=config.batch_size,
            index_folder=config.index,
        )

    def describe(self) -> WorkerReady:
        """Return what `/info` shows about the rankers."""
        models = [
            ModelSchema(id=spec, threshold=self._rankers.find(spec).threshold)
            for spec in self._rankers.models
        ]
        return WorkerReady(models, _available_rankers(), self.batch_size)

    def can_share_batch(self, request: JobRequest) -> bool:
        """Whether a request may be ranked in one batch with others."""
        job = request.job
        if not isinstance(job, RankJob) or not job.gains_from_batch:
            return False
        if request.deadline is not None:
            return False
        return self._rankers.find_or_default(job.model) is self._rankers.default

    def handle(self, requests: list[JobRequest]) -> list[JobOutcome]:
        """Execute jobs and return an outcome for each, in order. Several only if all can share."""
        if len(requests) > 1:
            try:
                return [*self._rank_batch([request.job for request in requests])]
            except Exception:
                # One request made the batch fail. Ranked alone, the others succeed.
                _log.exception(
                    "A batch of %d requests failed. Ranking them one at a time.", len(requests)
                )
        return [self._handle_one(request) for request in requests]

    def _handle_one(self, request: JobRequest) -> JobOutcome:
        try:
            return self._execute(request)
        except Exception as error:
            failure = JobFailure.from_error(error)
            if failure.kind == "internal":
                _log.exception("The job %s failed.", request.job.task)
            public = _hide_paths(failure.message, self._index_folder)
            if public == failure.message:
                return failure
            return replace(failure, message=public, log_message=failure.message)

    def _execute(self, request: JobRequest) -> JobResult:
        job, deadline_ms = request.job, request.remaining_ms()
        if isinstance(job, RankJob):
            ranker = self._rankers.find_or_default(job.model)
            tokens = self._count_tokens(ranker, [job.question, *job.candidates])
            return _rank(ranker, job, tokens=tokens, deadline_ms=deadline_ms)
        if isinstance(job, ScoreJob):
            ranker = self._rankers.find_or_default(job.model)
            tokens = self._count_tokens(ranker, [text for pair in job.pairs for text in pair])
            return _score(ranker, job, tokens=tokens, deadline_ms=deadline_ms)
        if isinstance(job, AskJob):
            ranker = self._find_ranker(job.ranker)
            if job.documents is None:
                return corpus_jobs.ask_index(self._require_index(), ranker, job, deadline_ms)
            texts = [job.question, *(document.text for document in job.documents)]
            self._count_tokens(ranker, texts)
            return corpus_jobs.ask_documents(ranker, job, job.documents, deadline_ms)
        if isinstance(job, AddJob):
            return corpus_jobs.add(self._require_corpus(), job)
        if isinstance(job, RemoveJob):
            return corpus_jobs.remove(self._require_corpus(), job)
        if isinstance(job, ListJob):
            return corpus_jobs.list_documents(self._require_corpus(), job)
        return corpus_jobs.show(self._require_corpus(), job)

    def _rank_batch(self, jobs: Sequence[object]) -> list[RankResult]:
        shared = [job for job in jobs if isinstance(job, RankJob)]
        ranker = self._rankers.default
        tokens = [self._count_tokens(ranker, [job.question, *job.candidates]) for job in shared]
        rankings = ranker.trace_many([(job.question, job.candidates) for job in shared])
        return [
            _rank_result(ranker, ranking, count)
            for ranking, count in zip(rankings, tokens, strict=True)
        ]

    def _find_ranker(self, spec: str | None) -> Ranker:
        try:
            return self._rankers.find(spec)
        except SpecError as error:
            raise NotFoundError(str(error)) from None

    def _require_index(self) -> Corpus | RemoteRetriever:
        if self._index is None:
            raise NotFoundError("This service has no index. Start it with --index DIR.")
        return self._index

    def _require_corpus(self) -> Corpus:
        index = self._require_index()
        if isinstance(index, RemoteRetriever):
            raise NotFoundError(f"The texts are in {index}. Add, show and remove them there.")
        return index

    def _count_tokens(self, ranker: Ranker, texts: Sequence[str]) -> int:
        tokens = count_tokens(ranker, texts, limit=self._max_tokens)
        if tokens > self._max_tokens:
            raise TooManyTokensError(
                f"The texts must have at most {self._max_tokens:,} tokens together, got more."
            )
        return tokens


def _hide_paths(message: str, index_folder: str | None) -> str:
    """Leave paths of this machine out of a message: they are not the client's business."""
    if index_folder is not None and is_postgres_url(index_folder):
        message = message.replace(str(ServerUrl.parse(index_folder)), "INDEX")
    elif index_folder is not None:
        folders = {str(Path(index_folder).expanduser()), os.path.realpath(index_folder)}
        folders |= {index_folder, os.path.abspath(index_folder)}
        for folder in sorted(folders - {".", "/"}, key=len, reverse=True):
            message = message.replace(folder, "INDEX")
    return _ABSOLUTE_PATH.sub("FILE", message)


def count_tokens(ranker: Ranker, texts: Iterable[str], *, limit: int) -> int:
    """
    Return the number of tokens of all texts; counting ends once there are more than `limit`.

    A cascade is counted by its own tokenizer. Other rankers do not read punctuation, but take time
    for it; for them, words and punctuation characters are counted.
    """
    tokenizer = _find_tokenizer(ranker)
    if tokenizer is not None:
        return tokenizer.count_tokens(texts, limit=limit)
    count = 0
    for text in texts:
        count += len(split_words(text)) + len(_PUNCTUATION.findall(text))
        if count > limit:
            break
    return count


def _find_tokenizer(ranker: Ranker) -> WordPiece | None:
    """Return the tokenizer of the last cascade in a ranker; None if it contains no cascade."""
    if isinstance(ranker, Cascade):
        return ranker.encoder.tokenizer if isinstance(ranker.encoder, OnnxEncoder) else None
    if isinstance(ranker, (Cut, WithDeadline)):
        return _find_tokenizer(ranker.ranker)
    if isinstance(ranker, Pipeline):
        return next(filter(None, map(_find_tokenizer, reversed(ranker.stages))), None)
    return None


def _open_index(config: WorkerConfig) -> Corpus | RemoteRetriever | None:
    if config.retriever is not None:
        return RemoteRetriever(config.retriever)
    if config.index is None:
        return None
    corpus = Corpus.open(config.index, ranker=None, allow_partial=config.allow_partial)
    corpus.retriever()  # completes what a killed process left unfinished
    return corpus


def _available_rankers() -> list[str]:
    """Return the names that a request may use, without rankers whose weights are not installed."""
    shipped = files("askline.models") / "shipped"
    return [
        name
        for name in BUILT_IN_RANKERS
        if name not in RANKERS_WITH_WEIGHTS or (shipped / name).is_dir()
    ]


def _rank(ranker: Ranker, job: RankJob, *, tokens: int, deadline_ms: float | None) -> RankResult:
    """Rank the candidates of one request."""
    ranking = ranker.trace(job.question, job.candidates, deadline_ms=deadline_ms)
    return _rank_result(ranker, ranking, tokens)


def _rank_result(ranker: Ranker, ranking: Ranking, tokens: int) -> RankResult:
    """Return a ranking as the result of a job."""
    hits, calibrated = ranking.hits, calibrated_stages(ranking)
    scores = ranking_relevance(ranking)
    last = max((hit.stage for hit in hits), default=0)
    return RankResult(
        order=[hit.index for hit in hits],
        scores=scores,
        raw_scores=[
            hit.score if hit.stage == last and last not in calibrated else log_odds(score)
            for hit, score in zip(hits, scores, strict=True)
        ],
        tokens=tokens,
        model=str(ranker),
    )


def _score(ranker: Ranker, job: ScoreJob, *, tokens: int, deadline_ms: float | None) -> ScoreResult:
    """Score pairs. The pairs of one question are ranked as one list of candidates."""
    pairs_of: dict[str, list[int]] = {}
    for position, (question, _) in enumerate(job.pairs):
        pairs_of.setdefault(question, []).append(position)
    scores = [0.0] * len(job.pairs)
    for question, positions in pairs_of.items():
        texts = [job.pairs[position][1] for position in positions]
        ranking = ranker.trace(question, texts, deadline_ms=deadline_ms)
        for hit, value in zip(ranking.hits, ranking_relevance(ranking), strict=True):
            scores[positions[hit.index]] = value
    return ScoreResult(scores, tokens, str(ranker))


BUILT_IN_RANKERS = ("bm25", "cascade", "cosinet", "idf-overlap", "jaccard", "rr", "wo", "wo+rr")
RANKERS_WITH_WEIGHTS = ("cascade", "cosinet")
"""The built-in rankers that need a model folder, which may not be installed."""
_STAGE = re.compile(r"\s*([a-z0-9+-]{1,30})\s*(?:%\s*([1-9]\d{0,5})\s*)?")
_MAX_SPEC_LENGTH = 200  # characters
_MAX_STAGES = 8


class AllowedRankers:
    """
    The rankers that a request may name. Each is loaded once; pipelines are composed of these.

    They are the rankers that the service was started with, by their specs, and pipelines of these
    and of the built-in rankers: names, cut-offs and `>>`, without options. So no path in a request
    reaches the file system.
    """

    def __init__(self, models: Sequence[str]) -> None:
        self.models = tuple(models)
        self._loaded = {spec: load(spec) for spec in models}
        self._loaded |= {str(ranker): ranker for ranker in self._loaded.values()}
        self.default = self._loaded[self.models[0]]

    def find(self, spec: str | None) -> Ranker:
        """Return the ranker of a spec, or the default for None. SpecError if it is not allowed."""
        if spec is None:
            return self.default
        if spec in self._loaded:
            return self._loaded[spec]
        stages = tuple(self._stage(name, keep) for name, keep in self._parse(spec))
        return stages[0] if len(stages) == 1 else Pipeline(stages)

    def find_or_default(self, model: str | None) -> Ranker:
        """Return the ranker of a name, or the default for the model names of other services."""
        try:
            return self.find(model)
        except AsklineError:
            return self.default

    def _stage(self, name: str, keep: str | None) -> Ranker:
        if name not in self._loaded:
            if name not in BUILT_IN_RANKERS:
                known = {*BUILT_IN_RANKERS, *self.models}
                raise SpecError(unknown_name_message("ranker", name, known))
            self._loaded[name] = load(name)
        return Cut(self._loaded[name], int(keep)) if keep else self._loaded[name]

    def _parse(self, spec: str) -> list[tuple[str, str | None]]:
        """Return the name and the cut-off of each stage."""
        parts = spec[: _MAX_SPEC_LENGTH + 1].split(">>")
        matches = [_STAGE.fullmatch(part) for part in parts]
        if len(spec) > _MAX_SPEC_LENGTH or len(parts) > _MAX_STAGES or None in matches:
            raise SpecError(
                f"A request may name {', '.join(self.models)} or a pipeline such as "
                f"'jaccard % 20 >> bm25' of at most {_MAX_STAGES} rankers without options, "
                f"got {spec[:_MAX_SPEC_LENGTH]!r}."
            )
        return [(match[1], match[2]) for match in matches if match]
