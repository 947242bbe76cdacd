"""What the routes share: the pool, the settings, and how work is waited for."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from .http_errors import Fault, Overloaded, Unfit
from .messages import Frame
from .metrics import Metrics
from .settings import Settings
from .worker_pool import Done, Pool

__all__ = ["ClientGone", "Service", "Writers", "new_id", "notes", "service_of", "stated_deadline"]

_LONGEST_MS = 3_600_000


class ClientGone(Fault):
    """Nobody is there to be answered."""

    status = 499

    def __init__(self) -> None:
        super().__init__("The client has gone.")


@dataclass(frozen=True, slots=True)
class Service:
    """One running service."""

    settings: Settings
    pool: Pool
    metrics: Metrics
    writers: Writers

    async def work(self, request: Request, task: Frame, deadline_ms: float | None = None) -> Frame:
        """The result of a task, as long as the client is there and has time."""
        limit = stated_deadline(request, deadline_ms)
        until = None if limit is None else time.monotonic() + limit / 1000
        done = await attended(request, self.pool.run(task, until=until))
        notes(request).update(
            queue_ms=round(done.queue_ms, 2), work_ms=round(done.work_ms, 2), task=task["task"]
        )
        return done.result

    async def write(self, request: Request, task: Frame) -> Frame:
        """The result of a task that writes. It is done also when the client has gone meanwhile."""
        done = await attended(request, self.writers.run(self.pool, task))
        notes(request).update(queue_ms=round(done.queue_ms, 2), work_ms=round(done.work_ms, 2))
        return done.result


class Writers:
    """One request writes at a time; the others wait here and not for the index's own lock."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Done]] = set()

    async def run(self, pool: Pool, task: Frame) -> Done:
        """Cancelling this leaves the writing itself alone."""
        if len(self._tasks) >= self._bound:
            raise Overloaded(len(self._tasks), 1)
        writing = asyncio.create_task(self._in_turn(pool, task))
        self._tasks.add(writing)
        writing.add_done_callback(self._forget)
        return await asyncio.shield(writing)

    async def _in_turn(self, pool: Pool, task: Frame) -> Done:
        async with self._turn:
            return await pool.run(task, firm=True)

    def _forget(self, writing: asyncio.Task[Done]) -> None:
        self._tasks.discard(writing)
        if not writing.cancelled():
            writing.exception()  # looked at, for whoever waited may have gone


async def attended(request: Request, work: Coroutine[Any, Any, Done]) -> Done:
    """What the work gives; called off when the client goes away first."""
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        for task in (working, gone):
            task.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def stated_deadline(request: Request, field: float | None) -> float | None:
    """Milliseconds, by the header X-Deadline-Ms and the body; the shorter of both."""
    header = request.headers.get("x-deadline-ms")
    if header is None:
        return field
    try:
        stated = float(header)
    except ValueError:
        stated = -1.0
    if not 1 <= stated <= _LONGEST_MS:
        raise Unfit(
            f"X-Deadline-Ms must be a number from 1 to {_LONGEST_MS:,}, got {header[:50]!r}."
        )
    return stated if field is None else min(stated, field)


def service_of(request: Request) -> Service:
    """The service that the request came to."""
    service: Service = request.app.state.service
    return service


def notes(request: Request) -> Frame:
    """What the access log will say of the request."""
    return request.scope.setdefault("askline.notes", {})  # type: ignore[no-any-return]


def new_id() -> str:
    """For a response."""
    return secrets.token_hex(12)
