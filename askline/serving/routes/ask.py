"""Questions over the index, or over documents that come with them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from ..corpus_schemas import AskRequest, AskResponse
from ..service import new_id, notes, service_of
from .sharing import ERRORS, check_count, errors

__all__ = ["router"]

router = APIRouter(tags=["ask"])


@router.post(
    "/v1/ask",
    responses=ERRORS | errors(404),
    summary="Ask a question",
    response_model=AskResponse,
)
async def ask(request: Request, body: AskRequest) -> Any:
    """The sentence that answers, its place in its source, and the stages it came through."""
    service = service_of(request)
    documents = None
    if body.documents is not None:
        check_count(service, len(body.documents), name="documents")
        documents = [
            (str(at), each) if isinstance(each, str) else (each.id, each.text)
            for at, each in enumerate(body.documents)
        ]
    notes(request).update(question=body.question, candidates=len(documents or ()))
    task = body.model_dump(exclude={"documents", "deadline_ms"})
    found = await service.work(
        request, {"task": "ask", **task, "documents": documents}, body.deadline_ms
    )
    return {"id": new_id(), **found}
