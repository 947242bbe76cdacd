"""The documents of the index. Ids are looked up in the store; none is ever opened as a path."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from ..corpus_schemas import AddRequest, AddResponse, DocumentResponse, ListResponse, RemoveResponse
from ..service import notes, service_of
from .sharing import ERRORS, check_count, errors

__all__ = ["router"]

router = APIRouter(tags=["documents"])

_ERRORS = ERRORS | errors(404)
_Id = Annotated[str, Path(min_length=1, max_length=1_000, description="Slashes are part of it.")]


@router.post("/v1/documents", responses=_ERRORS, response_model=AddResponse, summary="Add")
async def add(request: Request, body: AddRequest) -> Any:
    """Answered when all of it is on disk. A text with a known id takes the place of the old."""
    service = service_of(request)
    check_count(service, len(body.documents), name="documents")
    notes(request).update(documents=len(body.documents))
    pairs = [(document.id, document.text) for document in body.documents]
    return await service.write(request, {"task": "add", "documents": pairs})


@router.get("/v1/documents", responses=_ERRORS, response_model=ListResponse, summary="List")
async def browse(
    request: Request,
    after: Annotated[str, Query(max_length=1_000, description="The last id before the page.")] = "",
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Any:
    """In the order of their ids, a page at a time."""
    task = {"task": "browse", "after": after, "limit": limit}
    return await service_of(request).work(request, task)


@router.get(
    "/v1/documents/{id:path}",
    responses=_ERRORS,
    response_model=DocumentResponse,
    summary="Show one",
)
async def show(
    request: Request,
    id: _Id,  # noqa: A002 – its name on the line
    first: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=2_000)] = 500,
) -> Any:
    """Its sentences in order, from the one numbered `first` on."""
    task = {"task": "show", "id": id, "first": first, "limit": limit}
    return await service_of(request).work(request, task)


@router.delete(
    "/v1/documents/{id:path}",
    responses=_ERRORS,
    response_model=RemoveResponse,
    summary="Take one out",
)
async def remove(request: Request, id: _Id) -> Any:  # noqa: A002
    """Answered when it is gone from the disk."""
    return await service_of(request).write(request, {"task": "remove", "id": id})
