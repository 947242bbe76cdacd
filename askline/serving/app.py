"""The application: routes, errors in every client's shape, and the layers around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import Request

from .. import __version__
from .access_log import Watch
from .auth import Gate
from .http_errors import Fault, fault_response
from .metrics import Metrics
from .routes import ROUTERS
from .service import Service, Writers
from .settings import Settings
from .worker_pool import Pool

__all__ = ["create_app"]

_ABOUT = "Ask a question, get the line that answers it. Rerankers' clients work unchanged."
_PROBLEMS_SHOWN = 5

Handler = Callable[[Request, Exception], Awaitable[Response]]


def create_app(settings: Settings, pool: Pool, metrics: Metrics) -> FastAPI:
    """An application over a pool, which whoever made it starts and stops."""
    app = FastAPI(
        title="askline", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None
    )
    app.state.service = Service(settings, pool, metrics, Writers(settings.limits.queue))
    for router in ROUTERS:
        app.include_router(router)
    handlers: dict[type[Exception], Handler] = {
        Fault: _on_fault,
        HTTPException: _on_http,
        RequestValidationError: _on_invalid,
        Exception: _on_anything,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(Gate, settings=settings)
    app.add_middleware(Watch, metrics=metrics, log_text=settings.log_text)
    return app


async def _on_fault(request: Request, error: Exception) -> Response:
    assert isinstance(error, Fault)
    return fault_response(request.url.path, error, body=await _body(request))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = fault_response(request.url.path, Fault(str(error.detail), status=error.status_code))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        fault = Fault("The body must be JSON, got something else.", status=400)
    else:
        skip = 2 if request.url.path == "/rerank" else 1  # which of the two bodies was meant
        lines = [_line(each, skip) for each in found[:_PROBLEMS_SHOWN]]
        if len(found) > _PROBLEMS_SHOWN:
            lines.append(f"and {len(found) - _PROBLEMS_SHOWN:,} more problems.")
        fault = Fault(" ".join(lines), status=422)
    return fault_response(request.url.path, fault, body=error.body)


async def _on_anything(request: Request, error: Exception) -> Response:  # noqa: ARG001
    # The error itself goes to the log with its trace; the client need not see our insides.
    fault = Fault("Something went wrong inside the service. Its log says what.")
    return fault_response(request.url.path, fault)


def _line(problem: dict[str, Any], skip: int) -> str:
    """`documents.3: Input should be a valid string.` What came is not repeated."""
    place = ".".join(map(str, problem["loc"][skip if problem["loc"][:1] == ("body",) else 0 :]))
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place[:200] or 'body'}: {message[:300]}."


async def _body(request: Request) -> object:
    """The body once more, for routes whose clients differ by it."""
    if request.url.path != "/rerank":
        return None
    try:
        return await request.json()
    except Exception:
        return None
