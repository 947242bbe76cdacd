"""What the routes share: settings, worker pool, and waiting for a job while the client is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .http_errors import (
    ClientDisconnectedError,
    NoWorkerFreeError,
    QueueFullError,
    ServiceError,
)
from .limits import effective_deadline_ms
from .messages import Job
from .monitoring import Metrics, add_log_fields
from .settings import Settings
from .worker_pool import CompletedJob, WorkerPool

__all__ = ["NdjsonResponse", "Service", "WriteQueue", "service_of"]

_ResultT = TypeVar("_ResultT")


@dataclass(frozen=True, slots=True)
class Service:
    """One running service."""

    settings: Settings
    pool: WorkerPool
    metrics: Metrics
    write_queue: WriteQueue
    started: float = field(default_factory=time.time)
    """Unix time."""

    async def run(
        self, request: Request, job: Job[_ResultT], deadline_ms: float | None = None
    ) -> _ResultT:
        """Execute a job that reads. It is cancelled when the client disconnects."""
        limit_ms = effective_deadline_ms(request, deadline_ms)
        return await _run_while_connected(request, job, self._start(job, limit_ms))

    async def run_each(
        self, request: Request, jobs: Iterable[Job[_ResultT]], deadline_ms: float | None = None
    ) -> AsyncGenerator[tuple[int, _ResultT | ServiceError], None]:
        """
        Execute jobs that read, and yield the number of each with its result when it is done.

        One job per worker runs at a time, so that other clients wait for few of them. The deadline
        is that of each job. When the client disconnects, the running jobs are cancelled and no
        further one is begun; `ClientDisconnectedError` is raised. Close the generator at the end.
        """
        limit_ms = effective_deadline_ms(request, deadline_ms)
        waiting = enumerate(jobs)
        running: dict[asyncio.Task[CompletedJob[_ResultT]], int] = {}
        disconnect_task = asyncio.ensure_future(_wait_for_disconnect(request))
        done_count, work_ms = 0, 0.0
        try:
            while True:
                for number, job in waiting:
                    running[asyncio.ensure_future(self._start(job, limit_ms))] = number
                    if len(running) >= self.settings.workers:
                        break
                if not running:
                    return
                tasks = {*running, disconnect_task}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if disconnect_task.done():
                    raise ClientDisconnectedError
                for task in [each for each in running if each.done()]:
                    number, done_count = running.pop(task), done_count + 1
                    try:
                        completed = task.result()
                    except ServiceError as error:
                        yield number, error
                    else:
                        work_ms += completed.work_ms
                        yield number, completed.result
        finally:
            for own in (*running, disconnect_task):
                own.cancel()
            add_log_fields(request, done=done_count, work_ms=round(work_ms, 2))

    def _start(
        self, job: Job[_ResultT], limit_ms: float | None
    ) -> Coroutine[Any, Any, CompletedJob[_ResultT]]:
        deadline = None if limit_ms is None else time.monotonic() + limit_ms / 1000
        return self.pool.run(job, deadline=deadline)

    async def write(self, request: Request, job: Job[_ResultT]) -> _ResultT:
        """Execute a job that writes. It is completed even if the client disconnects."""
        return await _run_while_connected(request, job, self.write_queue.run(self.pool, job))


class NdjsonResponse(Response):
    """
    A response of lines that are sent as soon as they are there, each a JSON value.

    Unlike Starlette's streaming response, it closes the generator of its lines before it returns,
    so that the jobs of a client that disconnects are cancelled at once.
    """

    media_type = "application/x-ndjson"

    def __init__(self, lines: AsyncGenerator[bytes, None]) -> None:
        self.status_code = 200
        self.background = None
        # Proxies such as nginx would otherwise collect the lines.
        self.init_headers({"X-Accel-Buffering": "no"})
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the lines."""
        async with aclosing(self._lines) as lines:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            try:
                async for line in lines:
                    body = {"type": "http.response.body", "body": line + b"\n", "more_body": True}
                    await send(body)
            except ClientDisconnectedError:
                return
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class WriteQueue:
    """Executes one writing job at a time, so that none has to wait for the lock of the index."""

    def __init__(self, max_length: int, max_seconds: float) -> None:
        self._max_length = max_length
        self._max_seconds = max_seconds
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[CompletedJob[Any]]] = set()

    async def run(self, pool: WorkerPool, job: Job[_ResultT]) -> CompletedJob[_ResultT]:
        """
        Execute a job after those before it. Cancelling this call does not cancel the job.

        A job that has not begun after the maximum time is given up.
        """
        if len(self._tasks) >= self._max_length:
            raise QueueFullError(len(self._tasks), 1)
        task = asyncio.create_task(self._run_locked(pool, job))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def _run_locked(self, pool: WorkerPool, job: Job[_ResultT]) -> CompletedJob[_ResultT]:
        try:
            await asyncio.wait_for(self._lock.acquire(), self._max_seconds)
        except asyncio.TimeoutError:
            raise NoWorkerFreeError(self._max_seconds, 1) from None
        try:
            return await pool.run(job, is_write=True)
        finally:
            self._lock.release()

    def _forget(self, task: asyncio.Task[CompletedJob[Any]]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved here, because the client that waited may be gone


async def _run_while_connected(
    request: Request,
    job: Job[_ResultT],
    running: Coroutine[Any, Any, CompletedJob[_ResultT]],
) -> _ResultT:
    """Wait for the job, cancel it if the client disconnects first, and log its times."""
    job_task = asyncio.ensure_future(running)
    disconnect_task = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({job_task, disconnect_task}, return_when=asyncio.FIRST_COMPLETED)
        if not job_task.done():
            raise ClientDisconnectedError
        completed = job_task.result()
    finally:
        for task in (job_task, disconnect_task):
            task.cancel()
    add_log_fields(
        request,
        queue_ms=round(completed.queue_ms, 2),
        work_ms=round(completed.work_ms, 2),
        task=job.task,
    )
    return completed.result


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def service_of(request: Request) -> Service:
    """Return the service that received the request."""
    service: Service = request.app.state.service
    return service
