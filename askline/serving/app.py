"""The web application: routes, middleware, and handlers that turn exceptions into responses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__
from .auth import AuthMiddleware
from .http_errors import InternalError, ServiceError, ShuttingDownError, error_response
from .limits import BodyLimitMiddleware
from .monitoring import AccessLogMiddleware, Metrics
from .routes import ROUTERS
from .service import Service, WriteQueue
from .settings import Settings
from .worker_pool import WorkerPool

__all__ = ["create_app"]

_DESCRIPTION = (
    "Ask a question and get the sentence that answers it. "
    "Clients of other rerankers work unchanged."
)
_MAX_ERRORS_SHOWN = 5
_JSON_TYPES: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
_SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

Handler = Callable[[Request, Exception], Awaitable[Response]]


def create_app(settings: Settings, pool: WorkerPool, metrics: Metrics) -> FastAPI:
    """Create the application. The caller starts and stops the pool."""
    app = FastAPI(
        title="askline",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
    )
    write_queue = WriteQueue(settings.limits.queue, settings.limits.seconds)
    app.state.service = Service(settings, pool, metrics, write_queue)
    for router in ROUTERS:
        app.include_router(router)
    handlers: dict[type[Exception], Handler] = {
        ServiceError: _on_service_error,
        HTTPException: _on_http_exception,
        RequestValidationError: _on_validation_error,
        Exception: _on_unexpected_error,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    # The last one added is the outermost.
    app.add_middleware(BodyLimitMiddleware, limits=settings.limits)
    app.add_middleware(
        AuthMiddleware, keys=settings.keys, only_local_hosts=settings.only_local_hosts
    )
    app.add_middleware(_ShutdownMiddleware)
    app.add_middleware(_SecurityHeadersMiddleware)
    app.add_middleware(AccessLogMiddleware, metrics=metrics, log_text=settings.log_text)
    return app


class _SecurityHeadersMiddleware:
    """Adds the security headers to every response that does not set them itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class _ShutdownMiddleware:
    """Answers with status 503 the requests that the web server cancels when it is stopped."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def recording_send(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, recording_send)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            # A stream that has begun ends without its last chunk, so that its client knows.
            if not has_started:
                await error_response(scope["path"], ShuttingDownError())(scope, receive, send)


async def _on_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return error_response(request.url.path, error, body=await _body(request))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    message = str(error.detail)
    if error.status_code == 404:
        message = "There is nothing at this path. /docs lists all routes."
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(_allowed_methods(request)))
        message = f"Expected the method {headers['Allow']}, got {request.method}."
    service_error = ServiceError(message, status=error.status_code, headers=headers)
    return error_response(request.url.path, service_error)


def _allowed_methods(request: Request) -> set[str]:
    """Return the methods of all routes with this path. Starlette names those of one route."""
    return {
        method
        for route in (*request.app.routes, *(each for router in ROUTERS for each in router.routes))
        if isinstance(route, Route) and route.path_regex.match(request.scope["path"])
        for method in route.methods or ()
    }


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = error.errors()
    if any(each["type"] == "json_invalid" for each in details):
        service_error = ServiceError("The body must be JSON, got something else.", status=400)
    else:
        # On /rerank the path of a field begins with the name of the body's format.
        skip = 2 if request.url.path == "/rerank" else 1
        lines = list(_describe(details, skip))
        if len(lines) > _MAX_ERRORS_SHOWN:
            more = f"and {len(lines) - _MAX_ERRORS_SHOWN:,} more problems."
            lines[_MAX_ERRORS_SHOWN:] = [more]
        service_error = ServiceError(" ".join(lines), status=422)
    return error_response(request.url.path, service_error, body=error.body)


async def _on_unexpected_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    # The server logs the exception with its traceback; the client does not see it.
    return error_response(request.url.path, InternalError())


def _describe(details: Sequence[Any], skip: int) -> Iterator[str]:
    """
    Yield `documents.3: Input should be a valid string.`; values are not repeated.

    If no choice of a union fits the type of a value, this is one message. If one fits, the errors
    inside it are shown, and that the others do not fit is left out.
    """
    fields: dict[tuple[str | int, ...], list[dict[str, Any]]] = {}
    for each in details:
        path = each["loc"][skip if each["loc"][:1] == ("body",) else 0 :]
        field = tuple(takewhile(lambda part: not _is_choice(part), path))
        fields.setdefault(field, []).append(each | {"loc": path})
    for field, errors in fields.items():
        inner = [each for each in errors if not any(map(_is_choice, each["loc"][-1:]))]
        for each in inner:
            message = each["msg"].removeprefix("Value error, ")
            if each["type"] in ("model_type", "model_attributes_type"):
                message = f"expected an object, got {_json_type(each['input'])}"
            yield _line([part for part in each["loc"] if not _is_choice(part)], message)
        if not inner:
            expected = " or ".join(each["loc"][-1] for each in errors)
            yield _line(field, f"expected {expected}, got {_json_type(errors[0]['input'])}")


def _line(field: Sequence[str | int], message: str) -> str:
    return f"{'.'.join(map(str, field))[:200] or 'body'}: {message[:300]}."


def _is_choice(part: str | int) -> bool:
    """Whether a part of a path is the tag of a choice of a union, as no name of a field is."""
    return isinstance(part, str) and part.startswith(("a ", "an "))


def _json_type(value: object) -> str:
    return "null" if value is None else _JSON_TYPES.get(type(value), "another type")


async def _body(request: Request) -> object:
    """Return the decoded body on the route where it tells the clients apart."""
    if request.url.path != "/rerank":
        return None
    try:
        return await request.json()
    except Exception:
        return None
