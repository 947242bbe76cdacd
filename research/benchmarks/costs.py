"""What something takes, by the clock and by the processor."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Cost", "cost"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one ranking, in seconds: by the clock, and of all cores together."""

    wall: float
    processor: float


def cost(work: Callable[[], Any]) -> Cost:
    """Of doing it once."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return Cost(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
