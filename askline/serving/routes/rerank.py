"""`/rerank`, `/v1/rerank`, `/v2/rerank`, `/score` and more, for clients of other rerankers."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import Discriminator, Tag
from starlette.requests import Request

from ..common_schemas import new_response_id
from ..http_errors import COMMON_ERRORS, InvalidRequestError
from ..limits import JsonRoute, check_entry_count
from ..messages import RankJob, RankResult, ScoreJob
from ..monitoring import add_log_fields
from ..rerank_schemas import (
    CohereApiVersion,
    CohereMeta,
    InfinityItem,
    InfinityResponse,
    RankedText,
    RerankItem,
    RerankItemWithDocument,
    RerankRequest,
    RerankRequestV2,
    RerankResponse,
    RerankResponseV2,
    ScoreItem,
    ScoreRequest,
    ScoreResponse,
    TeiItem,
    TeiRequest,
    Usage,
)
from ..service import service_of

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute)


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
    return list(zip(ranked.order, ranked.scores, strict=True))[:top_n]


def _is_from_cohere_client(request: Request, model: str | None) -> bool:
    """Cohere's client names itself in a header, and the names of its models begin alike."""
    client = request.headers.get("x-fern-sdk-name", "") + request.headers.get("x-client-name", "")
    return "cohere" in client.lower() or (model or "").startswith("rerank-")


def _cohere_meta(version: str) -> CohereMeta:
    return CohereMeta(api_version=CohereApiVersion(version=version))
