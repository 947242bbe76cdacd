"""
Messages between the web process and its worker processes.

The web process sends one `WorkerConfig`, then a `JobRequest` per job, and a `CancelRequest` for a
job whose result is no longer needed. The worker answers the configuration with `WorkerReady` or a
`JobFailure`, and each job with a `JobReply`. Replies may come in any order. Before it begins jobs,
it names them in a `BeginReply`. The web process also
sends `PingRequest`s, and replaces a worker that stops answering them with `PingReply`s.

A message is a JSON object, preceded by its length in bytes as a big-endian 32-bit integer. It is
validated against its type on arrival.
"""

from __future__ import annotations

import json
import re
import struct
import time
from asyncio import StreamReader
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, BinaryIO, Literal, Protocol, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from ..errors import AsklineError, CorpusError, InputError, ModelError
from .common_schemas import ModelSchema
from .corpus_schemas import (
    AddResponse,
    AskResponse,
    DocumentResponse,
    ListResponse,
    NamedText,
    RemoveResponse,
)

__all__ = [
    "MAX_SHARED_CANDIDATES",
    "MAX_SHARED_CHARACTERS",
    "AddJob",
    "AnyJob",
    "AskJob",
    "BeginReply",
    "CancelRequest",
    "Job",
    "JobError",
    "JobFailure",
    "JobOutcome",
    "JobReply",
    "JobRequest",
    "JobResult",
    "ListJob",
    "MessageError",
    "PingReply",
    "PingRequest",
    "RankJob",
    "RankResult",
    "RemoveJob",
    "ScoreJob",
    "ScoreResult",
    "ShowJob",
    "WorkerConfig",
    "WorkerReady",
    "decode",
    "decode_reply",
    "decode_request",
    "decode_start",
    "encode",
    "read_message",
    "receive_message",
]

MAX_SHARED_CANDIDATES = 16
"""
Requests with more candidates than this do not share a batch. Lists of up to ten save a tenth to a
quarter of the time by sharing; lists of twenty fill batches of their own
(research/results/service_batches.json).
"""
MAX_SHARED_CHARACTERS = 20_000
"""Longer requests do not share a batch either: the other requests would wait for them."""

_T = TypeVar("_T")
_ResultT_co = TypeVar("_ResultT_co", covariant=True)
_LENGTH = struct.Struct(">I")
_RANKER_NAME = re.compile(r"[a-z0-9+-]+")


class MessageError(AsklineError):
    """A message that does not have the expected type."""


class JobError(InputError):
    """An error of a job that determines the HTTP status of the response."""

    status = 422


# --- Start of a worker ---


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker loads when it starts."""

    models: list[str]
    """Specs of the rankers; the first is the default. Empty for askline's default ranker."""
    index: str | None
    """The folder of the index, or the URL of its database."""
    retriever: str | None
    """The URL of a search server that is used in place of an index."""
    max_tokens: int
    """Tokens allowed per request."""
    batch_size: int
    """Requests that may be ranked in one batch."""
    allow_partial: bool = False
    """Whether an index of shards is searched of which some are missing."""


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """The worker has loaded its rankers and opened the index."""

    models: list[ModelSchema]
    rankers: list[str]
    """Names that a request may use in a pipeline."""
    batch_size: int
    """1 if the default ranker does not gain from batches."""

    def can_share_batch(self, job: AnyJob) -> bool:
        """
        Whether a job without a deadline may be ranked in one batch with others.

        A model that may name another ranker than the default says no, without parsing its spec.
        """
        if self.batch_size == 1 or not isinstance(job, RankJob) or not job.gains_from_batch:
            return False
        default, *others = [each.id for each in self.models]
        if job.model in (None, default):
            return True
        return {job.model, *_RANKER_NAME.findall(job.model)}.isdisjoint(
            [default, *others, *self.rankers]
        )


# --- Jobs and their results ---


class Job(Protocol[_ResultT_co]):
    """A job, which knows the type of its result."""

    @property
    def task(self) -> str: ...

    def read_result(self, value: object) -> _ResultT_co:
        """Return the decoded JSON value as a result, or raise MessageError."""
        ...


@dataclass(frozen=True, slots=True)
class RankResult:
    """A ranking, best first."""

    order: list[int]
    """Positions in `RankJob.candidates`."""
    scores: list[float]
    """Relevance from 0 to 1 in descending order."""
    raw_scores: list[float]
    """Scores of the ranker; log odds if they are probabilities."""
    tokens: int
    """Tokens in the request."""
    model: str
    """Spec of the ranker that was used."""


@dataclass(frozen=True, slots=True)
class RankJob:
    """Rank candidates for a question."""

    question: str
    candidates: list[str]
    model: str | None
    task: Literal["rank"] = "rank"

    @property
    def is_short(self) -> bool:
        """Whether others do not wait long for it."""
        return sum(map(len, self.candidates)) <= MAX_SHARED_CHARACTERS

    @property
    def gains_from_batch(self) -> bool:
        """Whether it is so short that it is ranked in one batch with others."""
        return len(self.candidates) <= MAX_SHARED_CANDIDATES and self.is_short

    def read_result(self, value: object) -> RankResult:
        return decode(RankResult, value)


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """Relevance from 0 to 1 for each pair, in the order of the pairs."""

    scores: list[float]
    tokens: int
    model: str


@dataclass(frozen=True, slots=True)
class ScoreJob:
    """Score (question, text) pairs."""

    pairs: list[tuple[str, str]]
    model: str | None
    task: Literal["score"] = "score"

    def read_result(self, value: object) -> ScoreResult:
        return decode(ScoreResult, value)


@dataclass(frozen=True, slots=True)
class AskJob:
    """Answer a question from the documents, or from the index if `documents` is None."""

    question: str
    documents: list[NamedText] | None
    split: bool
    ranker: str | None
    top_k: int
    retrieved: int
    explain: bool
    threshold: float | None = None
    task: Literal["ask"] = "ask"

    def read_result(self, value: object) -> AskResponse:
        return decode(AskResponse, value)


@dataclass(frozen=True, slots=True)
class AddJob:
    """Add documents to the index."""

    documents: list[NamedText]
    task: Literal["add"] = "add"

    def read_result(self, value: object) -> AddResponse:
        return decode(AddResponse, value)


@dataclass(frozen=True, slots=True)
class RemoveJob:
    """Remove one document from the index."""

    id: str
    task: Literal["remove"] = "remove"

    def read_result(self, value: object) -> RemoveResponse:
        return decode(RemoveResponse, value)


@dataclass(frozen=True, slots=True)
class ListJob:
    """List documents of the index, from the first id greater than `after`."""

    after: str
    limit: int
    task: Literal["list"] = "list"

    def read_result(self, value: object) -> ListResponse:
        return decode(ListResponse, value)


@dataclass(frozen=True, slots=True)
class ShowJob:
    """Show sentences of one document, from number `first`."""

    id: str
    first: int
    limit: int
    task: Literal["show"] = "show"

    def read_result(self, value: object) -> DocumentResponse:
        return decode(DocumentResponse, value)


AnyJob = RankJob | ScoreJob | AskJob | AddJob | RemoveJob | ListJob | ShowJob
JobResult = (
    RankResult
    | ScoreResult
    | AskResponse
    | AddResponse
    | RemoveResponse
    | ListResponse
    | DocumentResponse
)


# --- Requests to a worker and its replies ---


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job for a worker."""

    number: int
    """Rises from request to request of one worker."""
    job: Annotated[AnyJob, Field(discriminator="task")]
    deadline: float | None
    """On the monotonic clock, which all processes of a machine share."""
    is_write: bool
    """A job that writes is never cancelled once it has begun."""
    type: Literal["job"] = "job"

    def remaining_ms(self) -> float | None:
        """Return the milliseconds until the deadline, negative after it; None without deadline."""
        return None if self.deadline is None else 1000 * (self.deadline - time.monotonic())


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """The result of a job is no longer needed."""

    number: int
    type: Literal["cancel"] = "cancel"


@dataclass(frozen=True, slots=True)
class PingRequest:
    """Asks whether the worker is alive. It answers while it executes a job."""

    number: int
    type: Literal["ping"] = "ping"


@dataclass(frozen=True, slots=True)
class BeginReply:
    """The worker begins these jobs now. A job that it never named has had no effect."""

    numbers: list[int]
    type: Literal["begin"] = "begin"


@dataclass(frozen=True, slots=True)
class PingReply:
    """The answer to the ping with this number and to all pings before it."""

    number: int
    type: Literal["ping"] = "ping"


@dataclass(frozen=True, slots=True)
class JobFailure:
    """Why a job, or the start of a worker, failed."""

    kind: Literal["input", "corpus", "deadline", "cancelled", "internal"]
    message: str
    status: int | None = None
    """The HTTP status, if the kind does not determine it."""
    log_message: str | None = None
    """For the log, if the message for the client leaves something out."""

    @classmethod
    def from_error(cls, error: BaseException) -> JobFailure:
        """Describe an exception. Anything that askline does not raise on purpose is internal."""
        message = str(error) if isinstance(error, AsklineError) else _with_type(error)
        if isinstance(error, JobError):
            return cls("input", message, error.status)
        if isinstance(error, (InputError, ModelError)):
            return cls("input", message)
        return cls("corpus" if isinstance(error, CorpusError) else "internal", message)


JobOutcome = JobResult | JobFailure


@dataclass(frozen=True, slots=True)
class JobReply:
    """The end of a job: a result, or a failure."""

    number: int
    work_ms: float
    batch_size: int
    """Jobs that were done in the same batch."""
    result: object = None
    """Of the type that `Job.read_result` returns; JSON before that."""
    failure: JobFailure | None = None
    type: Literal["job"] = "job"


def _with_type(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# --- Encoding ---


def encode(message: object) -> bytes:
    """Encode a message. ASCII escapes preserve lone surrogates, which UTF-8 cannot encode."""
    kind: Any = type(message)
    value = _adapter(kind).dump_python(message)
    body = json.dumps(value, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(body)) + body


def decode(kind: type[_T], value: object) -> _T:
    """Return a decoded JSON value as a message of the given type, or raise MessageError."""
    hashable: Any = kind
    message: _T = _validate(_adapter(hashable), value, kind.__name__)
    return message


def decode_request(value: object) -> JobRequest | CancelRequest | PingRequest:
    """Return a decoded JSON value as a request to a worker, or raise MessageError."""
    request: JobRequest | CancelRequest | PingRequest = _validate(_requests(), value, "request")
    return request


def decode_reply(value: object) -> JobReply | BeginReply | PingReply:
    """Return a decoded JSON value as a reply of a worker, or raise MessageError."""
    reply: JobReply | BeginReply | PingReply = _validate(_replies(), value, "reply")
    return reply


def decode_start(value: object) -> WorkerReady | JobFailure:
    """Return a decoded JSON value as a worker's first message, or raise MessageError."""
    start: WorkerReady | JobFailure = _validate(_starts(), value, "start")
    return start


def _validate(adapter: TypeAdapter[Any], value: object, name: str) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        # The values stay out of the message: they may be a client's texts.
        details = error.errors(include_input=False, include_url=False, include_context=False)
        places = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in details[:3])
        raise MessageError(f"Expected a {name} message, got {places}.") from None


def read_message(stream: BinaryIO) -> object:
    """Return the next message as a JSON value; None if the stream has ended."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return json.loads(body) if len(body) == length else None


async def receive_message(stream: StreamReader) -> object:
    """Return the next message as a JSON value; IncompleteReadError if the stream has ended."""
    (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    value: object = json.loads(await stream.readexactly(length))
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _requests() -> TypeAdapter[Any]:
    return TypeAdapter(
        Annotated[JobRequest | CancelRequest | PingRequest, Field(discriminator="type")]
    )


@cache
def _replies() -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[JobReply | BeginReply | PingReply, Field(discriminator="type")])


@cache
def _starts() -> TypeAdapter[Any]:
    return TypeAdapter(WorkerReady | JobFailure)
