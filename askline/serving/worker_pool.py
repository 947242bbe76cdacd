"""
The worker processes of the service and the queue of jobs for them.

A job goes to an idle worker, or to one that can rank it in a batch with all the jobs it has: what a
worker has been given is not taken back when another worker becomes idle. If jobs are quick, a
worker holds one more, so that it never idles. The queue has a maximum length, and a job has a
maximum time. A job whose client has gone, or whose time is up, is removed from the queue or
cancelled in its worker. A worker that ends is replaced, and its jobs are tried once more by another
worker, except those that write. A worker that stops answering pings is ended; its replacement
starts before, as soon as it seems to hang, so that its jobs wait less.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..errors import AsklineError, CorpusError, InputError
from .http_errors import (
    DeadlineError,
    InternalError,
    NoWorkerFreeError,
    QueueFullError,
    TimeLimitError,
    WorkerLostError,
    error_of_failure,
)
from .messages import (
    AnyJob,
    BeginReply,
    CancelRequest,
    Job,
    JobFailure,
    JobReply,
    JobRequest,
    MessageError,
    PingReply,
    PingRequest,
    RankJob,
    WorkerConfig,
    WorkerReady,
    decode_reply,
    decode_start,
    encode,
    receive_message,
)
from .monitoring import Metrics
from .settings import Settings

__all__ = ["CompletedJob", "WorkerPool"]

_START_SECONDS = 120.0
_STOP_SECONDS = 5.0
_GRACE_SECONDS = 1.0
"""A ranker stops soon after its deadline; one that does not is cancelled after this time."""
_PING_SECONDS = 0.5
_MAX_UNANSWERED_PINGS = 8
"""
A worker that has not answered so many pings is ended: after 4 seconds. Pings are counted, and not
seconds, because a web process that is itself delayed sends none.
"""
_UNANSWERED_SECONDS = _PING_SECONDS * _MAX_UNANSWERED_PINGS
_RESPONSIVE_PINGS = 4
"""A worker with so many unanswered pings gets no jobs, and a replacement is started."""
_QUICK_SECONDS = 0.01
"""
Jobs that take less on average are sent one ahead. Without it, a worker would wait for its next job
for more than a tenth of the time.
"""
_MAX_ATTEMPTS = 2
_MAX_RESTART_PAUSE = 5.0  # seconds
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
)

_ResultT = TypeVar("_ResultT")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompletedJob(Generic[_ResultT]):
    """The result of a job and the time it took."""

    result: _ResultT
    queue_ms: float
    work_ms: float


class WorkerPool:
    """A pool that is constructed, started, used by any number of requests, and stopped."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._config = WorkerConfig(
            models=list(settings.models),
            index=None if settings.index is None else str(settings.index),
            retriever=settings.retriever,
            max_tokens=settings.limits.tokens,
            batch_size=settings.batch_size,
            allow_partial=settings.allow_partial,
        )
        self._threads = settings.threads_per_worker
        self._worker_count = settings.workers
        self._max_queued = settings.limits.queue
        self._max_seconds = settings.limits.seconds
        self._metrics = metrics
        self._workers: list[_WorkerProcess] = []
        self._queue: deque[_QueuedJob] = deque()
        self._supervisors: list[asyncio.Task[None]] = []
        self._mean_job_seconds = 0.05  # moving average
        self._description = WorkerReady([], [], 1)
        self.is_draining = False
        """Whether the service is about to stop: it serves, but wants no new requests."""

    @property
    def is_ready(self) -> bool:
        """Whether at least one worker has started and answers pings."""
        return not self.is_draining and any(worker.is_responsive for worker in self._workers)

    @property
    def description(self) -> WorkerReady:
        """The rankers, as the first worker described them; empty before the start."""
        return self._description

    async def start(self) -> None:
        """Start the workers and wait for the first. Its error is raised if it cannot start."""
        first = await _WorkerProcess.start(self._config, threads=self._threads)
        self._description = first.description
        self._supervisors = [
            asyncio.create_task(self._supervise(first if number == 0 else None))
            for number in range(self._worker_count)
        ]
        await asyncio.sleep(0)  # lets the first supervisor register its worker

    async def stop(self) -> None:
        """Stop the workers."""
        for supervisor in self._supervisors:
            supervisor.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self._workers))
        self._workers.clear()

    async def run(
        self, job: Job[_ResultT], *, deadline: float | None = None, is_write: bool = False
    ) -> CompletedJob[_ResultT]:
        """
        Execute a job in a worker. If this call is cancelled, so is the job.

        `deadline` is a time on the monotonic clock. A job that reads is also cancelled after the
        maximum time; a job that writes only if it has not begun by then.
        """
        # `Job` is the typed view of `AnyJob`, whose members are its only implementations.
        reply, queue_ms = await self._submit(job, deadline, is_write)  # type: ignore[arg-type]
        try:
            result = job.read_result(reply.result)
        except MessageError as error:
            _log.error("The result of the job %s cannot be read: %s", job.task, error)
            raise InternalError from error
        return CompletedJob(result, queue_ms, reply.work_ms)

    async def _submit(
        self, job: AnyJob, deadline: float | None, is_write: bool
    ) -> tuple[JobReply, float]:
        if len(self._queue) >= self._max_queued:
            self._metrics.rejected_requests.inc()
            raise QueueFullError(len(self._queue), self._retry_after())
        future = asyncio.get_running_loop().create_future()
        latest = time.monotonic() + self._max_seconds
        if deadline is not None:
            deadline = min(deadline, latest)
        queued = _QueuedJob(
            job,
            future,
            deadline,
            is_write,
            can_share_batch=deadline is None and self._description.can_share_batch(job),
            is_short=deadline is None and isinstance(job, RankJob) and job.is_short,
        )
        self._queue.append(queued)
        self._dispatch()
        try:
            return await self._wait(queued, latest)
        except asyncio.CancelledError:
            self._abandon(queued)
            raise

    async def _wait(self, queued: _QueuedJob, latest: float) -> tuple[JobReply, float]:
        """Wait for a reply until the job's deadline has passed or its time is up."""
        end = latest if queued.deadline is None else queued.deadline
        reply = await _wait_until(queued.future, end)
        if reply is None and queued.has_begun:
            if queued.is_write:
                reply = await queued.future
            elif queued.deadline is not None:
                reply = await _wait_until(queued.future, end + _GRACE_SECONDS)
        if reply is not None:
            return reply
        has_begun = queued.has_begun
        self._abandon(queued)
        if end < latest:
            raise DeadlineError
        if has_begun:
            raise TimeLimitError(self._max_seconds)
        raise NoWorkerFreeError(self._max_seconds, self._retry_after())

    def _dispatch(self) -> None:
        """Give queued jobs to workers that have room, in the order of the queue."""
        are_quick = self._mean_job_seconds < _QUICK_SECONDS
        while self._queue:
            job = self._queue[0]
            free = [
                worker
                for worker in self._workers
                if worker.is_responsive and worker.has_room_for(job, are_quick=are_quick)
            ]
            if not free:
                break
            self._queue.popleft()
            if job.deadline is not None and time.monotonic() >= job.deadline:
                job.fail(DeadlineError())
            else:
                min(free, key=lambda worker: len(worker.jobs)).send_job(job)
        self._update_gauges()

    def _update_gauges(self) -> None:
        self._metrics.queued_jobs.set(len(self._queue))
        self._metrics.running_jobs.set(sum(len(worker.jobs) for worker in self._workers))

    def _complete(self, job: _QueuedJob, reply: JobReply) -> None:
        work_seconds = reply.work_ms / 1000
        queue_seconds = max(0.0, time.monotonic() - job.queued_at - work_seconds)
        if reply.failure is not None and not job.future.done():
            if reply.failure.kind in ("internal", "corpus"):
                message = reply.failure.log_message or reply.failure.message
                _log.error("The job %s failed: %s", job.job.task, message)
            job.fail(error_of_failure(reply.failure))
        elif not job.future.done():
            share = work_seconds / reply.batch_size
            self._mean_job_seconds += 0.1 * (share - self._mean_job_seconds)
            self._metrics.queue_seconds.observe(queue_seconds)
            self._metrics.job_seconds.labels(job.job.task).observe(work_seconds)
            self._metrics.batch_size.observe(reply.batch_size)
            job.future.set_result((reply, 1000 * queue_seconds))
        self._dispatch()

    def _abandon(self, job: _QueuedJob) -> None:
        self._metrics.cancelled_jobs.inc()
        job.future.cancel()
        if job in self._queue:
            self._queue.remove(job)
            self._update_gauges()
        elif job.worker is not None:  # it ignores this for a job that writes and has begun
            job.worker.send_cancel(job)

    async def _supervise(self, worker: _WorkerProcess | None) -> None:
        """Keep one worker running: start it, receive its replies, start another when it ends."""
        failures = 0
        while True:
            try:
                worker = worker or await _WorkerProcess.start(self._config, threads=self._threads)
            except AsklineError as error:
                failures += 1
                _log.error("A worker could not start: %s", error)
                await asyncio.sleep(min(_MAX_RESTART_PAUSE, 0.1 * 2**failures))
                continue
            failures = 0
            self._workers.append(worker)
            self._metrics.workers.set(len(self._workers))
            self._dispatch()
            heartbeat = asyncio.create_task(self._check_heartbeat(worker))
            try:
                await worker.receive_replies(self._complete)
            except asyncio.CancelledError:
                worker.drop_replacement()
                raise
            finally:
                heartbeat.cancel()
            self._remove(worker)
            worker = await worker.take_replacement()

    async def _check_heartbeat(self, worker: _WorkerProcess) -> None:
        """
        Send pings, and end the worker once too many of them are unanswered.

        Half-way there, a replacement is started. It is dropped if the worker answers again.
        """
        while worker.unanswered_pings < _MAX_UNANSWERED_PINGS:
            was_responsive = worker.is_responsive
            worker.send_ping()
            await asyncio.sleep(_PING_SECONDS)
            if worker.is_responsive and not was_responsive:
                worker.drop_replacement()
                self._dispatch()
            elif was_responsive and not worker.is_responsive:
                worker.start_replacement(self._config, threads=self._threads)
        _log.error("A worker has not answered for %g s and is ended.", _UNANSWERED_SECONDS)
        worker.kill()

    def _remove(self, worker: _WorkerProcess) -> None:
        """Remove a worker that has ended and put its jobs back at the front of the queue."""
        self._workers.remove(worker)
        self._metrics.workers.set(len(self._workers))
        self._metrics.worker_restarts.inc()
        _log.error("A worker ended with exit code %s.", worker.process.returncode)
        for job in reversed(worker.jobs.values()):
            if job.has_begun and (job.is_write or job.attempts >= _MAX_ATTEMPTS):
                job.fail(WorkerLostError())
            elif not job.future.done():
                job.worker, job.has_begun = None, False
                self._queue.appendleft(job)
        self._dispatch()

    def _retry_after(self) -> int:
        """Estimate the seconds until the queue is empty."""
        return max(1, math.ceil(len(self._queue) * self._mean_job_seconds / self._worker_count))


@dataclass(eq=False, slots=True)
class _QueuedJob:
    """A job that a request waits for."""

    job: AnyJob
    future: asyncio.Future[tuple[JobReply, float]]
    """The reply and the milliseconds in the queue."""
    deadline: float | None
    is_write: bool
    """Once begun, it is neither cancelled nor tried again."""
    can_share_batch: bool
    is_short: bool
    queued_at: float = field(default_factory=time.monotonic)
    worker: _WorkerProcess | None = None
    number: int = 0
    has_begun: bool = False
    """Whether its worker has begun it."""
    attempts: int = 0
    """How often a worker has begun it."""

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


async def _wait_until(
    future: asyncio.Future[tuple[JobReply, float]], end: float
) -> tuple[JobReply, float] | None:
    """Return the result of the future, or None if there is none at a time on the clock."""
    seconds = max(0.0, end - time.monotonic())
    await asyncio.wait({future}, timeout=seconds)
    return future.result() if future.done() else None


class _WorkerProcess:
    """One worker process and the jobs that it was given."""

    def __init__(self, process: Process, description: WorkerReady) -> None:
        self.process = process
        self.description = description
        self.jobs: dict[int, _QueuedJob] = {}
        """The jobs without a reply, in the order in which the worker executes them."""
        self._last_number = 0
        self._last_ping = self._last_answered_ping = 0
        self._replacement: asyncio.Task[_WorkerProcess] | None = None

    @classmethod
    async def start(cls, config: WorkerConfig, *, threads: int) -> _WorkerProcess:
        """Start a process and wait until it is ready. Its own error is raised if it cannot load."""
        variables = dict.fromkeys(_THREAD_VARIABLES, str(threads))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "askline.serving.worker"),
            stdin=PIPE,
            stdout=PIPE,
            env={**variables, **os.environ, "PYTHONSAFEPATH": "1"},
        )
        assert process.stdout is not None
        assert process.stdin is not None
        # Not as an argument, which every user of the machine can read: it may contain a password.
        process.stdin.write(encode(config))
        try:
            value = await asyncio.wait_for(receive_message(process.stdout), _START_SECONDS)
        except (asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise AsklineError("A worker ended while it was starting.") from error
        except asyncio.CancelledError:
            process.kill()
            raise
        start = decode_start(value)
        if isinstance(start, JobFailure):
            errors = {"input": InputError, "corpus": CorpusError}
            raise errors.get(start.kind, AsklineError)(start.message)
        return cls(process, start)

    def has_room_for(self, job: _QueuedJob, *, are_quick: bool) -> bool:
        """Whether the job would wait for no other, or only for jobs that end soon."""
        together = (job, *self.jobs.values())
        return (
            len(together) == 1
            or (
                len(together) <= self.description.batch_size
                and all(each.can_share_batch for each in together)
            )
            or (are_quick and len(together) == 2 and all(each.is_short for each in together))
        )

    @property
    def unanswered_pings(self) -> int:
        return self._last_ping - self._last_answered_ping

    @property
    def is_responsive(self) -> bool:
        """Whether it can be expected to execute jobs."""
        return self.unanswered_pings < _RESPONSIVE_PINGS

    def send_ping(self) -> None:
        self._last_ping += 1
        self._send(PingRequest(self._last_ping))

    def start_replacement(self, config: WorkerConfig, *, threads: int) -> None:
        """Start the process that takes over if this one does not answer any more."""
        if self._replacement is None:
            self._replacement = asyncio.create_task(self.start(config, threads=threads))

    def drop_replacement(self) -> None:
        """End the replacement, whether it has started or not."""
        replacement, self._replacement = self._replacement, None
        if replacement is None or replacement.cancel():
            return
        if not replacement.cancelled() and replacement.exception() is None:
            replacement.result().kill()

    async def take_replacement(self) -> _WorkerProcess | None:
        """The replacement, once it has started; None if there is none or it cannot start."""
        replacement, self._replacement = self._replacement, None
        if replacement is None:
            return None
        try:
            return await replacement
        except AsklineError:
            return None  # the supervisor tries again and reports it

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    def send_job(self, job: _QueuedJob) -> None:
        """Send a job, with a number higher than all before."""
        self._last_number += 1
        job.number, job.worker = self._last_number, self
        self.jobs[job.number] = job
        self._send(JobRequest(job.number, job.job, job.deadline, job.is_write))

    def send_cancel(self, job: _QueuedJob) -> None:
        """Cancel a job. The worker still replies to it."""
        self._send(CancelRequest(job.number))

    async def receive_replies(self, on_reply: Callable[[_QueuedJob, JobReply], None]) -> None:
        """Pass replies on until the process has ended."""
        assert self.process.stdout is not None
        try:
            while True:
                reply = decode_reply(await receive_message(self.process.stdout))
                if isinstance(reply, PingReply):
                    self._last_answered_ping = reply.number
                elif isinstance(reply, BeginReply):
                    self._mark_begun(reply)
                else:
                    on_reply(self.jobs.pop(reply.number), reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # it has ended
        except MessageError as error:
            _log.error("A worker sent a reply that cannot be read: %s", error)
            self.kill()
        await self.process.wait()

    def _mark_begun(self, reply: BeginReply) -> None:
        for number in reply.numbers:
            job = self.jobs[number]
            job.has_begun = True
            job.attempts += 1

    async def stop(self) -> None:
        """Close the input of the process, which ends it; kill it if it does not end."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), _STOP_SECONDS)
        except asyncio.TimeoutError:
            self.process.kill()

    def _send(self, message: JobRequest | CancelRequest | PingRequest) -> None:
        assert self.process.stdin is not None
        # If the process has just ended, `receive_replies` notices.
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(encode(message))
