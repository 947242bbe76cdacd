"""The access log: one JSON line per request, and the request metrics."""

from __future__ import annotations

import json
import logging
import time

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics

__all__ = ["ACCESS_LOG", "AccessLogMiddleware", "add_log_fields"]

ACCESS_LOG = logging.getLogger("askline.access")
_FIELDS_KEY = "askline.log_fields"


def add_log_fields(request: Request, **fields: str | float) -> None:
    """Add fields to the log line of a request. `question` is logged only with `log_text`."""
    request.scope.setdefault(_FIELDS_KEY, {}).update(fields)


class AccessLogMiddleware:
    """The outermost middleware: measures each request and logs it when it ends."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, log_text: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._log_text = log_text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status, size = 499, 0  # 499: the client closed the connection before a response

        async def counting_send(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counting_send)
        except Exception:
            status = 500
            raise
        finally:
            self._record(scope, status, size, time.perf_counter() - start)

    def _record(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")  # as declared: few distinct values
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        if not ACCESS_LOG.isEnabledFor(logging.INFO):
            return
        fields: dict[str, str | float] = dict(scope.get(_FIELDS_KEY, {}))
        if not self._log_text:
            fields.pop("question", None)
        client = scope.get("client")
        record = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": client[0] if client else None,
            "method": scope["method"],
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 2),
            "bytes": size,
            **fields,
        }
        ACCESS_LOG.info(json.dumps(record))
