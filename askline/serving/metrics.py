"""What `/metrics` shows, each service with a registry of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

__all__ = ["Metrics"]

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """Counters and timings. Labels are routes and codes, never anything a client wrote."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.requests = Counter(
            "askline_requests", "Requests answered.", ["route", "code"], registry=registry
        )
        self.seconds = Histogram(
            "askline_request_seconds",
            "From the first byte of a request to the last of its response.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.waited = Histogram(
            "askline_queue_seconds",
            "Time that work waited for a worker.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.worked = Histogram(
            "askline_work_seconds",
            "Time that a worker took.",
            ["task"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.batch = Histogram(
            "askline_batch_size",
            "Requests that a worker took together.",
            buckets=(1, 2, 4, 8),
            registry=registry,
        )
        self.waiting = Gauge("askline_queue", "Work that waits for a worker.", registry=registry)
        self.given = Gauge("askline_working", "Work that a worker has.", registry=registry)
        self.workers = Gauge("askline_workers", "Workers that are ready.", registry=registry)
        self.restarts = Counter(
            "askline_worker_restarts", "Workers that ended by themselves.", registry=registry
        )
        self.refused = Counter(
            "askline_refused", "Requests refused because the queue was full.", registry=registry
        )
        self.called_off = Counter(
            "askline_called_off", "Work whose client had gone or time was up.", registry=registry
        )

    def text(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self.registry)
