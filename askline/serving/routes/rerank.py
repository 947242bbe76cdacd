"""
The rerank and score routes, with requests and responses in the formats of other rerankers.

- `/v2/rerank`: Cohere API version 2.
- `/v1/rerank`: Cohere API version 1, Jina, vLLM. `/rerank`: Jina, vLLM.
- `/rerank` with `texts`: Hugging Face text-embeddings-inference (TEI).
- `/infinity/rerank`: Infinity, where a document is returned as a string.
- `/score`, `/v1/score`: vLLM.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body
from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.config import JsonDict
from starlette.requests import Request

from ..common_schemas import (
    QUESTION_SCHEMA,
    DeadlineMs,
    Integer,
    NotEmpty,
    PositiveInteger,
    QuestionText,
    Schema,
    Text,
    TextOrDocument,
    as_integer,
    check_question,
    document_text,
    new_response_id,
)
from ..http_errors import COMMON_ERRORS, InvalidRequestError
from ..limits import JsonRoute, check_entry_count
from ..messages import RankJob, RankResult, ScoreJob
from ..monitoring import add_log_fields
from ..service import service_of

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute)

Query = Annotated[QuestionText, Field(description="The question.")]
Model = Annotated[
    Text | None,
    Field(
        max_length=1_000,
        description="A ranker that `/info` lists; any other name selects the default.",
    ),
]
TopN = Annotated[
    Annotated[int, Field(ge=0), BeforeValidator(as_integer)] | None,
    Field(description="Return the N best results; default: all. vLLM clients send 0 for all."),
]


class RerankRequestV2(Schema):
    """Cohere API version 2: documents are strings and are not returned."""

    model: Model = None
    query: Query
    documents: Annotated[list[Text], NotEmpty]
    top_n: TopN = None
    max_tokens_per_doc: Annotated[
        PositiveInteger | None, Field(description="Ignored: documents are never truncated.")
    ] = None
    priority: Integer | None = None
    deadline_ms: DeadlineMs = None

    def texts(self) -> list[str]:
        """Return the texts to rank."""
        return self.documents


class RerankRequest(Schema):
    """Cohere API version 1, Jina and vLLM."""

    model: Model = None
    query: Query
    documents: Annotated[list[TextOrDocument], NotEmpty]
    top_n: TopN = None
    rank_fields: Annotated[
        list[str] | None,
        Field(
            description=(
                "Fields to rank by; default: `text`. Each document must have one of them, and a "
                "field that it has must be a string."
            )
        ),
    ] = None
    return_documents: Annotated[
        bool | None,
        Field(description="Default: true for Jina clients, false for Cohere clients."),
    ] = None
    max_chunks_per_doc: Annotated[
        PositiveInteger | None, Field(description="Ignored: documents are never truncated.")
    ] = None
    deadline_ms: DeadlineMs = None

    def texts(self) -> list[str]:
        """Return the texts to rank, or raise ValueError with the position of a wrong document."""
        texts = []
        for position, document in enumerate(self.documents):
            try:
                texts.append(document_text(document, self.rank_fields))
            except ValueError as error:
                raise ValueError(f"documents.{position}: {error}.") from None
        return texts


class RerankItem(Schema):
    """One document of the ranking."""

    index: Annotated[int, Field(description="Position in the request.")]
    relevance_score: Annotated[float, Field(description="From 0 to 1, in descending order.")]


class RankedText(Schema):
    """The text that was ranked."""

    text: str


class RerankItemWithDocument(RerankItem):
    """One document of the ranking, with its text if `return_documents` is set."""

    document: RankedText | None = None


class CohereApiVersion(Schema):
    """The version of Cohere's API that the route implements."""

    version: str


class CohereBilledUnits(Schema):
    """A constant that Cohere clients expect."""

    search_units: float = 1


class CohereMeta(Schema):
    """The `meta` object of Cohere's responses."""

    api_version: CohereApiVersion
    billed_units: CohereBilledUnits = Field(default_factory=CohereBilledUnits)


class Usage(Schema):
    """Tokens in the request, as the ranker counts them."""

    total_tokens: int
    prompt_tokens: int


class RerankResponseV2(Schema):
    """Results, best first, as Cohere API version 2 returns them."""

    id: str
    results: list[RerankItem]
    meta: CohereMeta


class RerankResponse(Schema):
    """Results, best first, with the fields of Cohere API version 1, Jina and vLLM."""

    id: str
    object: str = "list"
    model: str
    usage: Usage
    results: list[RerankItemWithDocument]
    meta: CohereMeta


class InfinityItem(RerankItem):
    """One document of the ranking, with its text if `return_documents` is set."""

    document: str | None = None


class InfinityResponse(Schema):
    """Results, best first, as Infinity returns them."""

    id: str
    object: str = "rerank"
    model: str
    usage: Usage
    results: list[InfinityItem]
    created: int


ScoreInput = (
    Annotated[Text, Tag("a string")] | Annotated[list[Text], NotEmpty, Tag("a list of strings")]
)
_FIELD_PAIRS = (("queries", "documents"), ("text_1", "text_2"), ("data_1", "data_2"))
_ONE_FIELD_PAIR: JsonDict = {
    "oneOf": [
        {
            "required": list(pair),
            "properties": {
                name: {"not": {"type": "null"}} if name in pair else {"type": "null"}
                for names in _FIELD_PAIRS
                for name in names
            },
        }
        for pair in _FIELD_PAIRS
    ]
}
"""The part of the rule for the pairs that JSON Schema can express."""
_ScoreQuestionText = Annotated[Text, QUESTION_SCHEMA]
_ScoreQuestion = (
    Annotated[_ScoreQuestionText, Tag("a string")]
    | Annotated[list[_ScoreQuestionText], NotEmpty, Tag("a list of strings")]
)


class ScoreRequest(Schema):
    """
    Questions and texts, under one of three pairs of names.

    Either one question for all texts, or as many questions as texts.
    """

    model_config = ConfigDict(json_schema_extra=_ONE_FIELD_PAIR)

    model: Model = None
    queries: _ScoreQuestion | None = None
    documents: ScoreInput | None = None
    text_1: _ScoreQuestion | None = None
    text_2: ScoreInput | None = None
    data_1: _ScoreQuestion | None = None
    data_2: ScoreInput | None = None
    deadline_ms: DeadlineMs = None

    @model_validator(mode="after")
    def _check_pairs(self) -> ScoreRequest:
        self.pairs()
        return self

    def pairs(self) -> list[tuple[str, str]]:
        """Return (question, text) for each pair, or raise ValueError."""
        inputs = [(getattr(self, left), getattr(self, right)) for left, right in _FIELD_PAIRS]
        given = [pair for pair in inputs if pair != (None, None)]
        if len(given) != 1 or None in given[0]:
            names = " or ".join(f"{left} and {right}" for left, right in _FIELD_PAIRS)
            found = [
                name for pair in _FIELD_PAIRS for name in pair if getattr(self, name) is not None
            ]
            raise ValueError(f"expected {names}, got {', '.join(found) or 'none of them'}")
        questions, texts = ([side] if isinstance(side, str) else side for side in given[0])
        for question in questions:
            check_question(question)
        if len(questions) == 1:
            questions = questions * len(texts)
        if len(questions) != len(texts):
            raise ValueError(
                "expected one question or as many questions as texts, "
                f"got {len(questions)} and {len(texts)}"
            )
        return list(zip(questions, texts, strict=True))


class ScoreItem(Schema):
    """The score of one pair."""

    index: int
    object: str = "score"
    score: Annotated[float, Field(description="From 0 to 1.")]


class ScoreResponse(Schema):
    """Scores, in the order of the pairs, as vLLM returns them."""

    id: str
    object: str = "list"
    created: int
    model: str
    data: list[ScoreItem]
    usage: Usage


class TeiRequest(Schema):
    """A request of TEI clients."""

    query: Query
    texts: Annotated[list[Text], NotEmpty]
    raw_scores: Annotated[
        bool,
        Field(description="Return the scores of the ranker (log odds if calibrated), not 0 to 1."),
    ] = False
    return_text: bool = False
    truncate: Annotated[bool | None, Field(description="Ignored: texts are never truncated.")] = (
        None
    )
    truncation_direction: Literal["left", "right", "Left", "Right"] | None = None
    deadline_ms: DeadlineMs = None


class TeiItem(Schema):
    """One text of the ranking. TEI responses are a list of these, best first."""

    index: int
    score: float
    text: str | None = None


@router.post(
    "/v2/rerank", responses=COMMON_ERRORS, summary="Rerank (Cohere API v2)", tags=["rerank"]
)
async def rerank_v2(request: Request, body: RerankRequestV2) -> RerankResponseV2:
    """Documents are ordered by how well they answer the question, best first."""
    ranked = await _rank(request, body.query, body.texts(), body.model, body.deadline_ms)
    items = [
        RerankItem(index=index, relevance_score=score) for index, score in _top(ranked, body.top_n)
    ]
    return RerankResponseV2(id=new_response_id(), results=items, meta=_cohere_meta("2"))


@router.post(
    "/v1/rerank",
    responses=COMMON_ERRORS,
    response_model_exclude_none=True,
    summary="Rerank (Cohere API v1, Jina, vLLM)",
    tags=["rerank"],
)
async def rerank_v1(request: Request, body: RerankRequest) -> RerankResponse:
    """Documents are ordered by how well they answer the question, best first."""
    return await _rerank(request, body)


def _format(body: Any) -> str:
    """Return the field that tells the two formats of `/rerank` apart."""
    if isinstance(body, TeiRequest) or (isinstance(body, dict) and "texts" in body):
        return "texts"
    return "documents"


_TeiOrJinaRequest = Annotated[
    Annotated[TeiRequest, Tag("texts")] | Annotated[RerankRequest, Tag("documents")],
    Discriminator(_format),
    Body(),
]


@router.post(
    "/rerank",
    responses=COMMON_ERRORS,
    response_model_exclude_none=True,
    summary="Rerank (TEI, Jina, vLLM)",
    tags=["rerank"],
)
async def rerank(request: Request, body: _TeiOrJinaRequest) -> list[TeiItem] | RerankResponse:
    """A body with `texts` gets a list (TEI), a body with `documents` an object (Jina, vLLM)."""
    if isinstance(body, RerankRequest):
        return await _rerank(request, body)
    ranked = await _rank(request, body.query, body.texts, None, body.deadline_ms, name="texts")
    scores = ranked.raw_scores if body.raw_scores else ranked.scores
    return [
        TeiItem(index=index, score=score, text=body.texts[index] if body.return_text else None)
        for index, score in zip(ranked.order, scores, strict=True)
    ]


@router.post(
    "/infinity/rerank",
    responses=COMMON_ERRORS,
    response_model_exclude_none=True,
    summary="Rerank (Infinity)",
    tags=["rerank"],
)
async def rerank_infinity(request: Request, body: RerankRequest) -> InfinityResponse:
    """As `/v1/rerank`, for clients of Infinity, who read a document as a string."""
    ranked = await _rerank(request, body)
    return InfinityResponse(
        id=ranked.id,
        model=ranked.model,
        usage=ranked.usage,
        results=[
            InfinityItem(
                index=item.index,
                relevance_score=item.relevance_score,
                document=None if item.document is None else item.document.text,
            )
            for item in ranked.results
        ],
        created=int(time.time()),
    )


@router.post("/v1/score", responses=COMMON_ERRORS, summary="Score pairs (vLLM)", tags=["score"])
@router.post("/score", responses=COMMON_ERRORS, summary="Score pairs (vLLM)", tags=["score"])
async def score(request: Request, body: ScoreRequest) -> ScoreResponse:
    """A score is how well a text answers its question. Scores are in the order of the request."""
    service = service_of(request)
    pairs = body.pairs()
    check_entry_count(service.settings.limits, len(pairs), name="The pairs")
    add_log_fields(request, candidates=len(pairs))
    scored = await service.run(request, ScoreJob(pairs, body.model), body.deadline_ms)
    return ScoreResponse(
        id=new_response_id(),
        created=int(time.time()),
        model=scored.model,
        data=[ScoreItem(index=index, score=value) for index, value in enumerate(scored.scores)],
        usage=Usage(total_tokens=scored.tokens, prompt_tokens=scored.tokens),
    )


async def _rerank(request: Request, body: RerankRequest) -> RerankResponse:
    try:
        texts = body.texts()
    except ValueError as error:
        raise InvalidRequestError(str(error)) from None
    ranked = await _rank(request, body.query, texts, body.model, body.deadline_ms)
    return_documents = body.return_documents
    if return_documents is None:
        return_documents = not _is_from_cohere_client(request, body.model)
    items = [
        RerankItemWithDocument(
            index=index,
            relevance_score=score,
            document=RankedText(text=texts[index]) if return_documents else None,
        )
        for index, score in _top(ranked, body.top_n)
    ]
    return RerankResponse(
        id=new_response_id(),
        model=ranked.model,
        usage=Usage(total_tokens=ranked.tokens, prompt_tokens=ranked.tokens),
        results=items,
        meta=_cohere_meta("1"),
    )


async def _rank(
    request: Request,
    question: str,
    texts: list[str],
    model: str | None,
    deadline_ms: float | None,
    *,
    name: str = "documents",
) -> RankResult:
    service = service_of(request)
    check_entry_count(service.settings.limits, len(texts), name=name)
    add_log_fields(request, candidates=len(texts), question=question)
    return await service.run(request, RankJob(question, texts, model), deadline_ms)


def _top(ranked: RankResult, top_n: int | None) -> list[tuple[int, float]]:
    return list(zip(ranked.order, ranked.scores, strict=True))[: top_n or None]


def _is_from_cohere_client(request: Request, model: str | None) -> bool:
    """Cohere's client names itself in a header, and the names of its models begin alike."""
    client = request.headers.get("x-fern-sdk-name", "") + request.headers.get("x-client-name", "")
    return "cohere" in client.lower() or (model or "").startswith("rerank-")


def _cohere_meta(version: str) -> CohereMeta:
    return CohereMeta(api_version=CohereApiVersion(version=version))
