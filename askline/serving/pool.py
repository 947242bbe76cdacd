"""
The workers and the queue before them.

Work goes to the worker that has least of it. What waits is bounded; what nobody waits for any more
is taken out, or called off in the worker. A worker that ends is replaced, and what it was doing is
done once more by another, unless it was writing.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from typing import Any

from ..errors import AsklineError
from .faults import Overloaded, TooLate, WorkerLost, of_failure
from .frames import Frame
from .member import Done, Job, Member
from .metrics import Metrics
from .settings import Settings

__all__ = ["Pool"]

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
