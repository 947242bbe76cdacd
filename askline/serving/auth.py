"""Who and what is let in: the name asked for, the key, the size of the body and its time."""

from __future__ import annotations

import asyncio
import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .http_errors import Fault, fault_response
from .settings import Settings, is_loopback

__all__ = [
    "Gate",
]

_OPEN = {"/", "/health", "/ready", "/docs", "/openapi.json"}
"""Nothing here says anything about the documents or costs any work."""


class Gate:
    """The outermost check, before a byte of the body is read."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope["path"], scope["method"], Headers(scope=scope))
        if refusal is not None:
            await fault_response(scope["path"], refusal)(scope, receive, send)
            return
        await self._app(scope, _Measured(receive, self._settings), send)

    def _refusal(self, path: str, method: str, headers: Headers) -> Fault | None:
        settings = self._settings
        if settings.is_guarded and not is_loopback(_name(headers.get("host", ""))):
            return Fault("This service answers to localhost alone.", status=421)
        is_open = path in _OPEN or path.startswith("/page/")
        if not is_open and not settings.keys.admit(headers.get("authorization")):
            return Fault("A key is needed: Authorization: Bearer KEY.", status=401)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > settings.limits.body:
            return _too_large(settings.limits.body)
        if method == "POST" and not _is_json(headers.get("content-type", "")):
            return Fault("The body must be JSON: Content-Type: application/json.", status=415)
        return None


class _Measured:
    """The body as it comes, until there is too much of it or it takes too long."""

    def __init__(self, receive: Receive, settings: Settings) -> None:
        self._receive = receive
        self._limit = settings.limits.body
        self._seconds = settings.limits.body_seconds
        self._until: float | None = None
        self._size = 0
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:  # from now on only the end of the connection can come, at any time
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._until = self._until or now + self._seconds
        try:
            message = await asyncio.wait_for(self._receive(), self._until - now)
        except asyncio.TimeoutError:
            raise HTTPException(408, f"The body must arrive within {self._seconds:g} s.") from None
        self._size += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._size > self._limit:
            raise HTTPException(413, str(_too_large(self._limit)))
        return message


def _too_large(limit: int) -> Fault:
    return Fault(f"The body must have at most {limit:,} bytes, got more.", status=413)


def _is_json(content_type: str) -> bool:
    """No form of another site's page can send this, so none can ask in its reader's name."""
    kind = content_type.partition(";")[0].strip().lower()
    return re.fullmatch(r"application/([\w.-]+\+)?json", kind) is not None


def _name(host: str) -> str:
    """A Host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
