"""`/health`, `/ready`, `/info`, `/v1/models` and `/metrics`: the state of the service."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ... import __version__
from ..common_schemas import (
    HealthResponse,
    InfoResponse,
    LimitsSchema,
    ListedModel,
    ModelListResponse,
)
from ..http_errors import ServiceError, error_responses
from ..service import service_of

__all__ = ["router"]

router = APIRouter(tags=["state"])


@router.head("/health", include_in_schema=False)
@router.get("/health", summary="Whether the process runs")
async def health() -> HealthResponse:
    """Answers at once, at any load."""
    return HealthResponse(status="ok")


@router.head("/ready", include_in_schema=False)
@router.get("/ready", responses=error_responses(503), summary="Whether a worker is ready")
async def ready(request: Request) -> HealthResponse:
    """Answers 503 while no worker has started or responds, and once the service is to stop."""
    pool = service_of(request).pool
    if pool.is_draining:
        raise ServiceError("The service is about to stop.", status=503)
    if not pool.is_ready:
        raise ServiceError("No worker is ready.", status=503, retry_after=1)
    return HealthResponse(status="ready")


@router.get("/info", responses=error_responses(401), summary="What the service offers")
async def info(request: Request) -> InfoResponse:
    """Rankers, limits and version."""
    service = service_of(request)
    settings, description = service.settings, service.pool.description
    limits = settings.limits
    return InfoResponse(
        version=__version__,
        model_id=description.models[0].id,
        model_type={"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": "0"}}},
        max_client_batch_size=limits.documents,
        models=description.models,
        rankers=description.rankers,
        has_index=settings.index is not None or settings.retriever is not None,
        has_documents=settings.index is not None,
        workers=settings.workers,
        limits=LimitsSchema(
            body_bytes=limits.body,
            documents=limits.documents,
            tokens=limits.tokens,
            seconds=limits.seconds,
            queue=limits.queue,
        ),
    )


@router.get("/v1/models", responses=error_responses(401), summary="List the rankers")
async def models(request: Request) -> ModelListResponse:
    """The rankers that the service was started with, in the format of the OpenAI API."""
    service = service_of(request)
    started = int(service.started)
    return ModelListResponse(
        data=[
            ListedModel(id=model.id, created=started) for model in service.pool.description.models
        ]
    )


@router.get(
    "/metrics",
    responses=error_responses(401)
    | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
    summary="Prometheus metrics",
)
async def metrics(request: Request) -> Response:
    """In the Prometheus text format."""
    text = service_of(request).metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4")
