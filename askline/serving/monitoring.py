"""The Prometheus metrics that `/metrics` shows, and the access log: one JSON line per request."""

from __future__ import annotations

import json
import logging
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["ACCESS_LOG", "AccessLogMiddleware", "Metrics", "add_log_fields"]

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """
    The metrics of one service, in a registry of its own.

    Labels are routes, status codes and tasks, never text from a client.
    """

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.requests = Counter(
            "askline_requests", "Requests answered.", ["route", "code"], registry=registry
        )
        self.request_seconds = Histogram(
            "askline_request_seconds",
            "Time from the first byte of a request to the last byte of its response.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.queue_seconds = Histogram(
            "askline_queue_seconds",
            "Time that jobs waited for a worker.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.job_seconds = Histogram(
            "askline_job_seconds",
            "Time that a worker took for a job.",
            ["task"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.batch_size = Histogram(
            "askline_batch_size",
            "Requests that a worker ranked in one batch.",
            buckets=(1, 2, 4, 8),
            registry=registry,
        )
        self.queued_jobs = Gauge(
            "askline_queued_jobs", "Jobs that wait for a worker.", registry=registry
        )
        self.running_jobs = Gauge(
            "askline_running_jobs", "Jobs that workers have.", registry=registry
        )
        self.workers = Gauge("askline_workers", "Workers that are ready.", registry=registry)
        self.worker_restarts = Counter(
            "askline_worker_restarts", "Workers that ended unexpectedly.", registry=registry
        )
        self.rejected_requests = Counter(
            "askline_rejected_requests",
            "Requests rejected because the queue was full.",
            registry=registry,
        )
        self.cancelled_jobs = Counter(
            "askline_cancelled_jobs",
            "Jobs cancelled because the client was gone or the deadline had passed.",
            registry=registry,
        )

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry)


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
