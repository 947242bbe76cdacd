"""One worker process as the web process sees it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import AsklineError, CorpusError, InputError
from .frames import Frame, packed, receive_frame

__all__ = ["Done", "Job", "Member"]

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
