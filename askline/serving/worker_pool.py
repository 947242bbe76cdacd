"""
One worker process as the web process sees it.

The workers and the queue before them.

Work goes to the worker that has least of it. What waits is bounded; what nobody waits for any more
is taken out, or called off in the worker. A worker that ends is replaced, and what it was doing is
done once more by another, unless it was writing.
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
from typing import Any, NamedTuple

from ..errors import AsklineError, CorpusError, InputError
from .http_errors import Overloaded, TooLate, WorkerLost, of_failure
from .messages import Frame, packed, receive_frame
from .metrics import Metrics
from .settings import Settings

__all__ = [
    "Done",
    "Job",
    "Member",
    "Pool",
]

_START_SECONDS = 120.0
_STOP_SECONDS = 5.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class Done(NamedTuple):
    """A job's result, and what it took."""

    result: Frame
    queue_ms: float
    work_ms: float


@dataclass(eq=False, slots=True)
class Job:
    """Work that a request waits for."""

    task: Frame
    future: asyncio.Future[Done]
    until: float | None
    """On the monotonic clock, which all processes of a machine share."""
    firm: bool
    """Once begun it is neither called off nor begun again: it writes."""
    queued: float = field(default_factory=time.monotonic)
    member: Member | None = None
    number: int = 0
    tries: int = 0


class Member:
    """A process, and the jobs it has been given."""

    def __init__(self, process: Process, about: Frame) -> None:
        self.process = process
        self.about = about
        self.jobs: dict[int, Job] = {}
        self._last = 0

    @classmethod
    async def start(cls, plan: dict[str, Any], *, threads: int) -> Member:
        """Start a process and wait until it has loaded everything; its own error if it cannot."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "askline.serving.worker"),
            stdin=PIPE,
            stdout=PIPE,
            env={**dict.fromkeys(_THREADS, str(threads)), **os.environ, "PYTHONSAFEPATH": "1"},
        )
        assert process.stdout is not None
        assert process.stdin is not None
        # Not among its arguments, which everybody on the machine can read: it may hold a password.
        process.stdin.write(packed(plan))
        try:
            hello = await asyncio.wait_for(receive_frame(process.stdout), _START_SECONDS)
        except (asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise AsklineError("A worker ended while it was starting.") from error
        except asyncio.CancelledError:
            process.kill()
            raise
        if "failed" in hello:
            kinds = {"input": InputError, "corpus": CorpusError}
            raise kinds.get(hello["failed"]["kind"], AsklineError)(hello["failed"]["message"])
        return cls(process, hello["ready"])

    @property
    def room(self) -> int:
        """Jobs it can be given now: one more than it works on, so that it never waits for one."""
        return max(2, int(self.about["batch"])) - len(self.jobs)

    def give(self, job: Job) -> None:
        """Send a job. Numbers rise, so that a worker can forget what was called off."""
        self._last += 1
        job.number, job.member = self._last, self
        job.tries += 1
        self.jobs[job.number] = job
        self._send({**job.task, "number": job.number, "until": job.until, "firm": job.firm})

    def call_off(self, job: Job) -> None:
        """Nobody waits for it any more. Its place becomes free when the worker says so."""
        self._send({"call_off": job.number})

    async def listen(self, done: Callable[[Job, Frame], None]) -> None:
        """Hand results on until the process has ended."""
        assert self.process.stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await receive_frame(self.process.stdout)
                done(self.jobs.pop(frame["number"]), frame)
        await self.process.wait()

    async def stop(self) -> None:
        """Close its input, at which it ends; kill it if it does not."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), _STOP_SECONDS)
        except asyncio.TimeoutError:
            self.process.kill()

    def _send(self, frame: Frame) -> None:
        assert self.process.stdin is not None
        # A pipe to a process that has just ended takes this silently; `listen` tells of the end.
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(packed(frame))


_GRACE_SECONDS = 1.0
"""A ranker stops by itself within a batch of its deadline; one that does not is stopped by then."""
_TRIES = 2
_LONGEST_PAUSE = 5.0

_log = logging.getLogger(__name__)


class Pool:
    """Made, started, used by any number of requests, stopped."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._plan: dict[str, Any] = {
            "models": list(settings.models),
            "index": None if settings.index is None else str(settings.index),
            "retriever": settings.retriever,
            "tokens": settings.limits.tokens,
            "batch": settings.batch,
        }
        self._threads = settings.threads
        self._wanted = settings.workers
        self._bound = settings.limits.queue
        self._metrics = metrics
        self._members: list[Member] = []
        self._waiting: deque[Job] = deque()
        self._keepers: list[asyncio.Task[None]] = []
        self._work_seconds = 0.05  # a moving mean
        self.about: Frame = {}

    @property
    def ready(self) -> bool:
        """Whether there is a worker."""
        return bool(self._members)

    async def start(self) -> None:
        """Start the workers; returns with the first, whose error is raised if it cannot start."""
        first = await Member.start(self._plan, threads=self._threads)
        self.about = first.about
        self._keepers = [
            asyncio.create_task(self._keep(first if place == 0 else None))
            for place in range(self._wanted)
        ]
        await asyncio.sleep(0)  # the first keeper takes its worker in

    async def stop(self) -> None:
        """End the workers."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await asyncio.gather(*(member.stop() for member in self._members))
        self._members.clear()

    async def run(self, task: Frame, *, until: float | None = None, firm: bool = False) -> Done:
        """The result of a task. Cancelling this calls the work off."""
        if len(self._waiting) >= self._bound:
            self._metrics.refused.inc()
            raise Overloaded(len(self._waiting), self._retry_after())
        job = Job(task, asyncio.get_running_loop().create_future(), until, firm)
        self._waiting.append(job)
        self._dispatch()
        try:
            return await asyncio.wait_for(job.future, _patience(until))
        except asyncio.TimeoutError:
            self._abandon(job)
            raise TooLate from None
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def _dispatch(self) -> None:
        while self._waiting:
            free = [member for member in self._members if member.room > 0]
            if not free:
                break
            job = self._waiting.popleft()
            if job.until is not None and time.monotonic() >= job.until:
                _fail(job, TooLate())
            else:
                min(free, key=lambda member: len(member.jobs)).give(job)
        self._count()

    def _count(self) -> None:
        self._metrics.waiting.set(len(self._waiting))
        self._metrics.given.set(sum(len(member.jobs) for member in self._members))

    def _done(self, job: Job, frame: Frame) -> None:
        work = frame["work_ms"] / 1000
        waited = max(0.0, time.monotonic() - job.queued - work)
        if "done" in frame and not job.future.done():
            self._work_seconds += 0.1 * (work / frame["batch"] - self._work_seconds)
            self._metrics.waited.observe(waited)
            self._metrics.worked.labels(job.task["task"]).observe(work)
            self._metrics.batch.observe(frame["batch"])
            job.future.set_result(Done(frame["done"], 1000 * waited, frame["work_ms"]))
        elif not job.future.done():
            if frame["failed"]["kind"] == "fault":
                _log.error("%s failed: %s", job.task["task"], frame["failed"]["message"])
            _fail(job, of_failure(frame["failed"]))
        self._dispatch()

    def _abandon(self, job: Job) -> None:
        self._metrics.called_off.inc()
        if job in self._waiting:
            self._waiting.remove(job)
            self._count()
        elif job.member is not None and not job.firm:
            job.member.call_off(job)

    async def _keep(self, member: Member | None) -> None:
        """One place among the workers: start one, listen to it, start another when it has ended."""
        failures = 0
        while True:
            try:
                member = member or await Member.start(self._plan, threads=self._threads)
            except AsklineError as error:
                failures += 1
                _log.error("A worker could not start: %s", error)
                await asyncio.sleep(min(_LONGEST_PAUSE, 0.1 * 2**failures))
                continue
            failures = 0
            self._members.append(member)
            self._metrics.workers.set(len(self._members))
            self._dispatch()
            await member.listen(self._done)
            self._lose(member)
            member = None

    def _lose(self, member: Member) -> None:
        self._members.remove(member)
        self._metrics.workers.set(len(self._members))
        self._metrics.restarts.inc()
        _log.error("A worker ended with code %s.", member.process.returncode)
        for job in reversed(member.jobs.values()):
            if job.firm or job.tries >= _TRIES:
                _fail(job, WorkerLost())
            elif not job.future.done():
                job.member = None
                self._waiting.appendleft(job)
        self._dispatch()

    def _retry_after(self) -> int:
        """Seconds until what waits will be done, by what work took of late."""
        return max(1, math.ceil(len(self._waiting) * self._work_seconds / self._wanted))


def _patience(until: float | None) -> float | None:
    """How long to wait for a job before it is stopped the hard way."""
    if until is None:
        return None
    return max(0.0, until - time.monotonic()) + _GRACE_SECONDS


def _fail(job: Job, error: Exception) -> None:
    if not job.future.done():
        job.future.set_exception(error)
