"""Every response: its headers, a line in the access log, its figures in the metrics."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics

__all__ = [
    "ACCESS",
    "Watch",
]

ACCESS = logging.getLogger("askline.access")

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Watch:
    """The outermost layer."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, log_text: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._log_text = log_text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and watch what comes back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        seen = {"status": 499, "bytes": 0}  # 499: nobody was there to be answered

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            seen["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._note(scope, seen, time.perf_counter() - start)

    def _note(self, scope: Scope, seen: dict[str, int], seconds: float) -> None:
        path = getattr(scope.get("route"), "path", "unknown")  # as declared, so they are few
        self._metrics.requests.labels(path, str(seen["status"])).inc()
        self._metrics.seconds.labels(path).observe(seconds)
        if not ACCESS.isEnabledFor(logging.INFO):
            return
        notes: dict[str, Any] = dict(scope.get("askline.notes", {}))
        if not self._log_text:
            notes.pop("question", None)
        client = scope.get("client")
        record = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": client[0] if client else None,
            "method": scope["method"],
            "route": path,
            "status": seen["status"],
            "ms": round(1000 * seconds, 2),
            "bytes": seen["bytes"],
            **notes,
        }
        ACCESS.info(json.dumps(record))
