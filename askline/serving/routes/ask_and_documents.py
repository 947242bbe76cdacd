"""
`/v1/ask`: answer a question from the index or from documents in the request.

`/v1/documents`: the documents of the index. Ids are looked up in the store, never opened as paths.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from ..access_log import add_log_fields
from ..corpus_schemas import (
    AddRequest,
    AddResponse,
    AskRequest,
    AskResponse,
    DocumentResponse,
    ListResponse,
    NamedText,
    RemoveResponse,
)
from ..http_errors import COMMON_ERRORS, error_responses
from ..limits import JsonRoute, check_entry_count
from ..messages import AddJob, AskJob, ListJob, RemoveJob, ShowJob
from ..service import service_of

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute)

_ERRORS = COMMON_ERRORS | error_responses(404)
_WRITE_ERRORS = _ERRORS | error_responses(403)
_DocumentId = Annotated[
    str, Path(min_length=1, max_length=1_000, description="It may contain slashes.")
]


@router.post("/v1/ask", responses=_ERRORS, summary="Ask a question", tags=["ask"])
async def ask(request: Request, body: AskRequest) -> AskResponse:
    """The response has the best sentences, their sources, and the stages that ranked them."""
    service = service_of(request)
    documents = None
    if body.documents is not None:
        check_entry_count(service.settings.limits, len(body.documents), name="documents")
        documents = [
            NamedText(id=str(number), text=document) if isinstance(document, str) else document
            for number, document in enumerate(body.documents)
        ]
    add_log_fields(request, question=body.question, candidates=len(documents or ()))
    job = AskJob(
        question=body.question,
        documents=documents,
        split=body.split,
        ranker=body.ranker,
        top_k=body.top_k,
        retrieved=body.retrieved,
        threshold=body.threshold,
        explain=body.explain,
    )
    return await service.run(request, job, body.deadline_ms)


@router.post("/v1/documents", responses=_WRITE_ERRORS, summary="Add documents", tags=["documents"])
async def add_documents(request: Request, body: AddRequest) -> AddResponse:
    """A known id replaces the old document. The response is sent when all are on disk."""
    service = service_of(request)
    check_entry_count(service.settings.limits, len(body.documents), name="documents")
    add_log_fields(request, documents=len(body.documents))
    return await service.write(request, AddJob(body.documents))


@router.get("/v1/documents", responses=_ERRORS, summary="List documents", tags=["documents"])
async def list_documents(
    request: Request,
    after: Annotated[
        str, Query(max_length=1_000, description="List the ids that follow this one.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> ListResponse:
    """One page, ordered by id."""
    return await service_of(request).run(request, ListJob(after, limit))


@router.get(
    "/v1/documents/{id:path}", responses=_ERRORS, summary="Show a document", tags=["documents"]
)
async def show_document(
    request: Request,
    id: _DocumentId,  # noqa: A002 – the name in the API
    first: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=2_000)] = 500,
) -> DocumentResponse:
    """Its sentences in order, from number `first`."""
    return await service_of(request).run(request, ShowJob(id, first, limit))


@router.delete(
    "/v1/documents/{id:path}",
    responses=_WRITE_ERRORS,
    summary="Remove a document",
    tags=["documents"],
)
async def remove_document(request: Request, id: _DocumentId) -> RemoveResponse:  # noqa: A002
    """The response is sent when it is removed from the disk."""
    return await service_of(request).write(request, RemoveJob(id))
