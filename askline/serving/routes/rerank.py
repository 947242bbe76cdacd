"""Reranking, as the clients of Cohere, Jina, vLLM and TEI ask for it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import Discriminator, Tag
from starlette.requests import Request

from ..messages import Frame
from ..rerank_schemas import (
    ApiVersion,
    Meta,
    RankedText,
    RerankItem,
    RerankItemWithDocument,
    RerankRequest,
    RerankRequestV2,
    RerankResponse,
    RerankResponseV2,
    TeiItem,
    TeiRequest,
    Usage,
)
from ..service import new_id, notes, service_of
from .sharing import ERRORS, check_count

__all__ = ["router"]

router = APIRouter(tags=["rerank"])


@router.post("/v2/rerank", responses=ERRORS, summary="Rerank, Cohere's second version")
async def rerank_v2(request: Request, body: RerankRequestV2) -> RerankResponseV2:
    """Documents by how well they answer the question, best first."""
    found = await _ranked(request, body.query, body.texts(), body.model, body.deadline_ms)
    items = [RerankItem(index=at, relevance_score=score) for at, score in _top(found, body.top_n)]
    return RerankResponseV2(id=new_id(), results=items, meta=_meta("2"))


@router.post(
    "/v1/rerank",
    responses=ERRORS,
    response_model_exclude_none=True,
    summary="Rerank, Cohere's first version and Jina's",
)
async def rerank_v1(request: Request, body: RerankRequest) -> RerankResponse:
    """Documents by how well they answer the question, best first."""
    return await _rerank(request, body)


def _kind(body: Any) -> str:
    if isinstance(body, TeiRequest) or (isinstance(body, dict) and "texts" in body):
        return "texts"
    return "documents"


_Either = Annotated[
    Annotated[TeiRequest, Tag("texts")] | Annotated[RerankRequest, Tag("documents")],
    Discriminator(_kind),
    Body(),
]


@router.post(
    "/rerank",
    responses=ERRORS,
    response_model_exclude_none=True,
    summary="Rerank, TEI's and Jina's",
)
async def rerank(request: Request, body: _Either) -> list[TeiItem] | RerankResponse:
    """A body with `texts` is TEI's and gets a list; one with `documents` is Jina's or vLLM's."""
    if isinstance(body, RerankRequest):
        return await _rerank(request, body)
    found = await _ranked(request, body.query, body.texts, None, body.deadline_ms, name="texts")
    scores = found["raw"] if body.raw_scores else found["scores"]
    return [
        TeiItem(index=at, score=score, text=body.texts[at] if body.return_text else None)
        for at, score in zip(found["order"], scores, strict=True)
    ]


async def _rerank(request: Request, body: RerankRequest) -> RerankResponse:
    texts = body.texts()
    found = await _ranked(request, body.query, texts, body.model, body.deadline_ms)
    shown = body.return_documents
    if shown is None:
        shown = not _is_coheres(request, body.model)
    items = [
        RerankItemWithDocument(
            index=at,
            relevance_score=score,
            document=RankedText(text=texts[at]) if shown else None,
        )
        for at, score in _top(found, body.top_n)
    ]
    return RerankResponse(
        id=new_id(),
        model=found["model"],
        usage=Usage(total_tokens=found["tokens"], prompt_tokens=found["tokens"]),
        results=items,
        meta=_meta("1"),
    )


async def _ranked(
    request: Request,
    query: str,
    texts: list[str],
    model: str | None,
    deadline_ms: float | None,
    *,
    name: str = "documents",
) -> Frame:
    service = service_of(request)
    check_count(service, len(texts), name=name)
    task = {"task": "rank", "question": query, "candidates": texts, "model": model}
    notes(request).update(candidates=len(texts), question=query)
    return await service.work(request, task, deadline_ms)


def _top(found: Frame, top: int | None) -> list[tuple[int, float]]:
    return list(zip(found["order"], found["scores"], strict=True))[:top]


def _is_coheres(request: Request, model: str | None) -> bool:
    """Cohere's client names itself in a header, and its models begin alike."""
    client = request.headers.get("x-fern-sdk-name", "") + request.headers.get("x-client-name", "")
    return "cohere" in client.lower() or (model or "").startswith("rerank-")


def _meta(version: str) -> Meta:
    return Meta(api_version=ApiVersion(version=version))
