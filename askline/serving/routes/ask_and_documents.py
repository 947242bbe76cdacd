"""
`/v1/ask`: answer a question from the index or from documents in the request.

`/v1/ask/stream`: answer many questions from the index, one line per question as soon as it is done.

`/v1/documents`: the documents of the index. Ids are looked up in the store, never opened as paths.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from ..common_schemas import ErrorSchema
from ..corpus_schemas import (
    AddRequest,
    AddResponse,
    AskRequest,
    AskResponse,
    AskStreamLine,
    AskStreamRequest,
    DocumentResponse,
    ListResponse,
    NamedText,
    QuestionError,
    RemoveResponse,
)
from ..http_errors import COMMON_ERRORS, ServiceError, error_responses
from ..limits import JsonRoute, check_entry_count
from ..messages import AddJob, AskJob, ListJob, RemoveJob, ShowJob
from ..monitoring import add_log_fields
from ..service import NdjsonResponse, service_of

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute)

_ERRORS = COMMON_ERRORS | error_responses(404)
_WRITE_ERRORS = _ERRORS | error_responses(403)
_ERROR_BODY = {"schema": {"$ref": f"#/components/schemas/{ErrorSchema.__name__}"}}
_STREAM_ERRORS: dict[int | str, dict[str, Any]] = {
    # FastAPI would give a `model` the media type of the stream.
    status: {"description": own["description"], "content": {"application/json": _ERROR_BODY}}
    for status, own in _ERRORS.items()
}
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


@router.post(
    "/v1/ask/stream",
    responses=_STREAM_ERRORS | {200: {"model": AskStreamLine}},
    status_code=200,
    response_class=NdjsonResponse,
    summary="Ask many questions",
    tags=["ask"],
)
async def ask_stream(request: Request, body: AskStreamRequest) -> NdjsonResponse:
    """
    The response has one line of JSON per question, sent as soon as the question is done.

    Lines come in the order in which the questions are done; `index` says which one it is. The
    deadline is that of each question. If the first question that is done has failed, the response
    is its error; a later question that fails has a line with `error`.
    """
    service = service_of(request)
    check_entry_count(service.settings.limits, len(body.questions), name="questions")
    add_log_fields(request, task="ask", questions=len(body.questions))
    jobs = (
        AskJob(
            question=question,
            documents=None,
            split=True,
            ranker=body.ranker,
            top_k=body.top_k,
            retrieved=body.retrieved,
            threshold=body.threshold,
            explain=False,
        )
        for question in body.questions
    )
    results = service.run_each(request, jobs, body.deadline_ms)
    index, first = await anext(results)
    if isinstance(first, ServiceError):
        await results.aclose()
        raise first

    async def lines() -> AsyncGenerator[bytes, None]:
        async with aclosing(results):
            yield _stream_line(index, first)
            async for number, result in results:
                yield _stream_line(number, result)

    return NdjsonResponse(lines())


def _stream_line(index: int, result: AskResponse | ServiceError) -> bytes:
    if isinstance(result, ServiceError):
        error = QuestionError(status=result.status, message=str(result))
        return AskStreamLine(index=index, error=error).model_dump_json().encode()
    return AskStreamLine(index=index, response=result).model_dump_json().encode()


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
