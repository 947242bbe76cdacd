"""
A worker process: `python -m askline.serving.worker`, started by `worker_pool`.

It reads its configuration and then requests from standard input, and writes a reply per job to
standard output. A thread reads, so that a job can be cancelled while it waits or runs, and answers
pings; the main thread executes the jobs. When standard input ends, the web process has ended, and
the worker exits at once.

A job is cancelled by an exception in the main thread. It interrupts Python code, and code that
releases the interpreter lock for a short time. If the job has not ended after `_CANCEL_SECONDS`,
the process ends, and the web process starts another.
"""

from __future__ import annotations

import ctypes
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from threading import Lock
from typing import BinaryIO

from .job_handler import JobHandler
from .messages import (
    BeginReply,
    JobFailure,
    JobOutcome,
    JobReply,
    JobRequest,
    MessageError,
    PingReply,
    PingRequest,
    WorkerConfig,
    decode,
    decode_request,
    encode,
    read_message,
)

__all__ = ["Worker", "main"]

Handle = Callable[[list[JobRequest]], list[JobOutcome]]

_CANCELLED = JobFailure("cancelled", "The job was cancelled.")
_DEADLINE_PASSED = JobFailure("deadline", "The deadline passed before the job began.")
_CANCEL_SECONDS = 0.8
"""Time for a cancelled job to end before the process is ended."""
_EXIT_NOT_CANCELLED = 75
_log = logging.getLogger(__name__)


class _CancelledError(BaseException):
    """Raised in the main thread inside a job whose result is no longer needed."""


class Worker:
    """The main loop of a worker: takes requests from a queue, in batches if they can share one."""

    def __init__(
        self,
        handle: Handle,
        source: BinaryIO,
        sink: BinaryIO,
        *,
        batch_size: int,
        can_share_batch: Callable[[JobRequest], bool] = lambda _: True,
        exit_process: Callable[[int], None] = os._exit,
    ) -> None:
        self._handle = handle
        self._source = source
        self._sink = sink
        self._batch_size = batch_size
        self._can_share_batch = can_share_batch
        self._exit_process = exit_process
        self._queue: queue.SimpleQueue[JobRequest | None] = queue.SimpleQueue()  # None: the end
        self._lock = Lock()
        self._sink_lock = Lock()
        self._batches_begun = self._batches_ended = 0
        self._cancelled: set[int] = set()
        self._running: set[int] = set()  # jobs that may be cancelled now
        self._main_thread = threading.get_ident()

    def run(self) -> None:
        """Execute jobs until the input ends."""
        threading.Thread(target=self._read_requests, daemon=True).start()
        request = self._queue.get()
        while request is not None:
            batch, request = self._next_batch(request)
            self._send(*self._execute(batch))
            request = request or self._queue.get()

    def _send(self, *replies: JobReply | BeginReply | PingReply) -> None:
        with self._sink_lock:
            for reply in replies:
                self._sink.write(encode(reply))
            self._sink.flush()

    def _next_batch(self, first: JobRequest) -> tuple[list[JobRequest], JobRequest | None]:
        """Return a batch of waiting requests, and the next request if it cannot share the batch."""
        batch = [first]
        while (
            self._can_share_batch(first)
            and len(batch) < self._batch_size
            and not self._queue.empty()
        ):
            request = self._queue.get()
            if request is None:
                self._queue.put(None)  # the end comes after this batch
                break
            if not self._can_share_batch(request):
                return batch, request
            batch.append(request)
        return batch, None

    def _execute(self, batch: list[JobRequest]) -> list[JobReply]:
        start = time.perf_counter()
        outcomes: dict[int, JobOutcome] = {request.number: _CANCELLED for request in batch}
        try:
            self._handle_batch(batch, outcomes)
            # Inside the try block: a cancellation that arrives as the work ends is caught here.
            self._finish_batch()
        except _CancelledError:
            pass
        with self._lock:
            self._batches_ended = self._batches_begun
            # Numbers rise, so cancellations up to the highest number here are settled.
            self._cancelled = {number for number in self._cancelled if number > max(outcomes)}
        work_ms = 1000 * (time.perf_counter() - start)
        return [
            JobReply(number, work_ms, len(batch), failure=outcome)
            if isinstance(outcome, JobFailure)
            else JobReply(number, work_ms, len(batch), result=outcome)
            for number, outcome in outcomes.items()
        ]

    def _handle_batch(self, batch: list[JobRequest], outcomes: dict[int, JobOutcome]) -> None:
        late = {request.number for request in batch if _is_late(request)}
        outcomes |= dict.fromkeys(late, _DEADLINE_PASSED)
        wanted = [request for request in self._not_cancelled(batch) if request.number not in late]
        if wanted:
            # Sent before the jobs can be cancelled, so that no message is cut off.
            self._send(BeginReply([request.number for request in wanted]))
        with self._lock:
            wanted = [request for request in wanted if request.number not in self._cancelled]
            self._running = {request.number for request in wanted if not request.is_write}
            self._batches_begun += 1
        handled = self._handle(wanted) if wanted else []
        outcomes |= {
            request.number: outcome for request, outcome in zip(wanted, handled, strict=True)
        }

    def _not_cancelled(self, batch: list[JobRequest]) -> list[JobRequest]:
        with self._lock:
            return [request for request in batch if request.number not in self._cancelled]

    def _finish_batch(self) -> None:
        with self._lock:
            self._running = set()

    def _read_requests(self) -> None:
        try:
            while (value := read_message(self._source)) is not None:
                request = decode_request(value)
                if isinstance(request, JobRequest):
                    self._queue.put(request)
                elif isinstance(request, PingRequest):
                    self._send(PingReply(request.number))
                else:
                    self._cancel(request.number)
        except MessageError:
            _log.exception("A worker received a request that it cannot read, and ends.")
        except BrokenPipeError:
            pass  # the web process has ended
        self._exit_process(0)
        self._queue.put(None)

    def _cancel(self, number: int) -> None:
        """Interrupt the main thread once every job of the running batch is cancelled."""
        with self._lock:
            self._cancelled.add(number)
            if self._running and self._running <= self._cancelled:
                self._running = set()  # so that it is raised once: a second would not be caught
                raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
                raise_in_thread(
                    ctypes.c_ulong(self._main_thread), ctypes.py_object(_CancelledError)
                )
                check = threading.Timer(
                    _CANCEL_SECONDS, self._exit_if_running, (self._batches_begun,)
                )
                check.daemon = True
                check.start()

    def _exit_if_running(self, batch: int) -> None:
        """End the process if a cancelled batch has not ended."""
        with self._lock:
            is_running = self._batches_ended < batch
        if is_running:
            _log.error("A cancelled job did not end within %g s. The worker ends.", _CANCEL_SECONDS)
            self._exit_process(_EXIT_NOT_CANCELLED)


def _is_late(request: JobRequest) -> bool:
    remaining_ms = request.remaining_ms()
    return remaining_ms is not None and remaining_ms <= 0


def main() -> None:
    """Load the rankers and the index, report that the worker is ready, and execute jobs."""
    _configure_logging()
    for name in ("SIGINT", "SIGTERM"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)  # the web process decides when to stop
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with the messages
    value = read_message(source)
    if value is None:
        return
    try:
        handler = JobHandler.load(decode(WorkerConfig, value))
    except Exception as error:
        with sink:
            sink.write(encode(JobFailure.from_error(error)))
        return
    sink.write(encode(handler.describe()))
    sink.flush()
    worker = Worker(
        handler.handle,
        source,
        sink,
        batch_size=handler.batch_size,
        can_share_batch=handler.can_share_batch,
    )
    worker.run()


def _configure_logging() -> None:
    """Write askline's messages to standard error, which is that of the service."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    # Not the root logger: connectors would log errors that are reported to the client anyway.
    logging.getLogger("askline").addHandler(handler)


if __name__ == "__main__":
    main()
