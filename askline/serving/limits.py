"""
The limits of one request: type, size and time of the body, number of entries, deadline header.

The number of tokens is checked in the worker (`job_handler`), the length of the queue and the time
of a job in `worker_pool`, connections and headers in `server`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, fields
from typing import Any

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InputError
from .http_errors import InvalidRequestError, ServiceError, error_response

__all__ = [
    "BodyLimitMiddleware",
    "JsonRoute",
    "Limits",
    "check_entry_count",
    "effective_deadline_ms",
]

_MAX_DEADLINE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request and of the queue. Exceeding them gives 413, or 429 for the queue."""

    body: int = 4 * 2**20
    """Bytes of a body."""
    documents: int = 1_000
    """Candidates, texts or documents in a body."""
    tokens: int = 200_000
    """Tokens in all texts of a body, as the ranker counts them."""
    seconds: float = 30.0
    """Time for a request, from its last byte to the end of its job."""
    queue: int = 64
    """Requests that wait for a worker."""
    connections: int = 1_024
    """Connections that wait for a request; when there are more, the oldest are closed."""
    connections_per_address: int = 256
    """The same for each client address."""
    header_bytes: int = 32_768
    """Bytes of a request line and its headers."""
    header_seconds: float = 10.0
    """Time for the headers to arrive."""
    body_seconds: float = 30.0
    """Time for a body to arrive."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not value > 0:
                raise InputError(f"The limit {limit.name} must be above 0, got {value}.")


class BodyLimitMiddleware:
    """Refuses bodies that are too large or too slow."""

    def __init__(self, app: ASGIApp, *, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with an error."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > self._limits.body:
            error = ServiceError(_too_large_message(self._limits.body), status=413)
            await error_response(scope["path"], error)(scope, receive, send)
            return
        await self._app(scope, _LimitedBody(receive, self._limits), send)


class _LimitedBody:
    """An ASGI `receive` that raises once the body is too large or too slow."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._max_bytes = limits.body
        self._max_seconds = limits.body_seconds
        self._deadline: float | None = None
        self._received = 0
        self._is_complete = False

    async def __call__(self) -> Message:
        if self._is_complete:  # the only message left is the disconnect, which may take any time
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._deadline = self._deadline or now + self._max_seconds
        try:
            message = await asyncio.wait_for(self._receive(), self._deadline - now)
        except asyncio.TimeoutError:
            detail = f"The body must arrive within {self._max_seconds:g} s."
            raise HTTPException(408, detail) from None
        self._received += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._received > self._max_bytes:
            raise HTTPException(413, _too_large_message(self._max_bytes))
        return message


def check_entry_count(limits: Limits, count: int, *, name: str) -> None:
    """Refuse a list with too many entries (413) or without entries (400)."""
    if count > limits.documents:
        raise ServiceError(
            f"{name} must have at most {limits.documents:,} entries, got {count:,}.", status=413
        )
    if count == 0:
        raise ServiceError(f"{name} must have at least one entry, got none.", status=400)


def effective_deadline_ms(request: Request, deadline_ms: float | None) -> float | None:
    """Return the shorter of the body's deadline and that of the header X-Deadline-Ms."""
    header = request.headers.get("x-deadline-ms")
    if header is None:
        return deadline_ms
    try:
        header_ms = float(header)
    except ValueError:
        header_ms = -1.0
    if not 1 <= header_ms <= _MAX_DEADLINE_MS:
        raise InvalidRequestError(
            f"X-Deadline-Ms must be a number from 1 to {_MAX_DEADLINE_MS:,}, got {header[:50]!r}."
        )
    return header_ms if deadline_ms is None else min(header_ms, deadline_ms)


def _too_large_message(max_bytes: int) -> str:
    return f"The body must have at most {max_bytes:,} bytes, got more."


_JSON = re.compile(r"application/([\w.-]+\+)?json")


class JsonRoute(APIRoute):
    """
    A route that refuses a body that is compressed or not declared as JSON, with status 415.

    The check comes after routing, so that a wrong method gets 405.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, with the check before it."""
        handler = super().get_route_handler()
        if "POST" not in (self.methods or ()):
            return handler

        async def checked(request: Request) -> Response:
            _check_media_type(request)
            return await handler(request)

        return checked


def _check_media_type(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise ServiceError(
            f"The body must not be compressed, got Content-Encoding: {encoding[:50]}. Send the "
            "JSON as it is, without Content-Encoding.",
            status=415,
            headers={"Accept-Encoding": "identity"},
        )
    # Browsers do not send this type from a form, so no other site can post on a user's behalf.
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not _JSON.fullmatch(media_type):
        raise ServiceError("The body must be JSON: Content-Type: application/json.", status=415)
