"""Scores of pairs, as vLLM's clients ask for them."""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.requests import Request

from ..rerank_schemas import ScoreItem, ScoreRequest, ScoreResponse, Usage
from ..service import new_id, notes, service_of
from .sharing import ERRORS, check_count

__all__ = ["router"]

router = APIRouter(tags=["score"])


@router.post("/v1/score", responses=ERRORS, summary="Score pairs")
@router.post("/score", responses=ERRORS, summary="Score pairs", include_in_schema=True)
async def score(request: Request, body: ScoreRequest) -> ScoreResponse:
    """How well each text answers its question, in the order given."""
    service = service_of(request)
    pairs = body.pairs()
    check_count(service, len(pairs), name="The pairs")
    notes(request).update(candidates=len(pairs))
    task = {"task": "score", "pairs": pairs, "model": body.model}
    found = await service.work(request, task, body.deadline_ms)
    return ScoreResponse(
        id=new_id(),
        created=int(time.time()),
        model=found["model"],
        data=[ScoreItem(index=at, score=each) for at, each in enumerate(found["scores"])],
        usage=Usage(total_tokens=found["tokens"], prompt_tokens=found["tokens"]),
    )
