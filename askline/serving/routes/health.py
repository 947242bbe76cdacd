"""How the service is: for load balancers, for Prometheus, for TEI's clients."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ... import __version__
from ..common_schemas import Health, Info, LimitsInfo, ModelInfo
from ..http_errors import Fault
from ..service import service_of
from .sharing import errors

__all__ = [
    "router",
]

router = APIRouter(tags=["state"])


@router.head("/health", include_in_schema=False)
@router.get("/health", summary="Is the process there?")
async def health() -> Health:
    """Answered at once, whatever is being ranked."""
    return Health(status="ok")


@router.head("/ready", include_in_schema=False)
@router.get("/ready", responses=errors(503), summary="Is there a worker?")
async def ready(request: Request) -> Health:
    """503 while no worker is ready."""
    if not service_of(request).pool.ready:
        fault = Fault("No worker is ready yet.", status=503)
        fault.retry_after = 1
        raise fault
    return Health(status="ready")


@router.get("/info", responses=errors(401), summary="What is served")
async def info(request: Request) -> Info:
    """Rankers, limits and version."""
    service = service_of(request)
    about, limits = service.pool.about, service.settings.limits
    models = [ModelInfo(**model) for model in about["models"]]
    return Info(
        version=__version__,
        model_id=models[0].id,
        model_type={"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": "0"}}},
        max_client_batch_size=limits.documents,
        models=models,
        rankers=about["rankers"],
        has_index=service.settings.index is not None or service.settings.retriever is not None,
        has_documents=service.settings.index is not None,
        workers=service.settings.workers,
        limits=LimitsInfo(
            body_bytes=limits.body,
            documents=limits.documents,
            tokens=limits.tokens,
            queue=limits.queue,
        ),
    )


@router.get(
    "/metrics",
    responses=errors(401) | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
    summary="Prometheus's",
)
async def metrics(request: Request) -> Response:
    """In Prometheus's text format."""
    text = service_of(request).metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4")
