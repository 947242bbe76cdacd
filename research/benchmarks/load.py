"""Load over loopback: a fixed number of clients, each asking again as soon as it is answered."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np


@dataclass(frozen=True)
class Bounds:
    """When a measurement ends, whichever comes first."""

    requests: int = 10**9
    """So many have been sent."""
    seconds: float = 1e9
    """No request is sent after this time."""
    patience: float = 60.0
    """Seconds after that in which those still open may be answered."""


@dataclass
class Load:
    """What some clients met."""

    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    """Requests still open when patience was at its end."""

    def row(self) -> dict[str, Any]:
        """Requests a second that were answered with 200, and how long these took."""
        # One that was never answered took longer than any that was.
        taken = [*self.milliseconds, *[math.inf] * self.unanswered] or [math.inf]
        p50, p95, p99 = np.percentile(taken, [50, 95, 99], method="higher")
        return {
            "requests a second": round(self.codes[200] / self.seconds, 2),
            "p50 ms": _shown(p50),
            "p95 ms": _shown(p95),
            "p99 ms": _shown(p99),
            "codes": {str(code): count for code, count in sorted(self.codes.items())},
            "unanswered": self.unanswered,
            "seconds": round(self.seconds, 1),
        }


def _shown(milliseconds: float) -> float | None:
    """None for what was not seen to the end."""
    return round(float(milliseconds), 1) if math.isfinite(milliseconds) else None


def drive(base: str, bodies: Sequence[dict[str, object]], *, clients: int, bounds: Bounds) -> Load:
    """So many clients until the bounds are reached."""
    return asyncio.run(_drive(base, [_request(body) for body in bodies], clients, bounds))


async def _drive(base: str, requests: Sequence[bytes], clients: int, bounds: Bounds) -> Load:
    load = Load()
    start = time.perf_counter()
    numbers = iter(range(bounds.requests))

    async def client() -> None:
        where = urlsplit(base)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        while time.perf_counter() - start < bounds.seconds:
            number = next(numbers, None)
            if number is None:
                break
            began = time.perf_counter()
            writer.write(requests[number % len(requests)])
            code = await _answer(reader)
            load.codes[code] += 1
            if code == 200:
                load.milliseconds.append(1000 * (time.perf_counter() - began))
        writer.close()

    tasks = [asyncio.create_task(client()) for _ in range(clients)]
    _, unanswered = await asyncio.wait(tasks, timeout=bounds.seconds + bounds.patience)
    load.unanswered = len(unanswered)
    load.seconds = time.perf_counter() - start
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
    return load


async def _answer(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next(
        int(line.partition(":")[2])
        for line in head.split("\r\n")
        if line.startswith("content-length")
    )
    await reader.readexactly(length)
    return int(head.split(" ", 2)[1])


def _request(body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        "POST /v1/rerank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content
