"""The Prometheus metrics that `/metrics` shows."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

__all__ = ["Metrics"]

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
