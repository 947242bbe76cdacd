"""A point in time to be done by, made once for a question and handed from stage to stage."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InputError

__all__ = ["Deadline", "Stop"]

Stop = Callable[[], bool]
"""Whether time is up; asked between batches."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A `Stop` by the clock."""

    at: float
    clock: Callable[[], float] = time.perf_counter

    @classmethod
    def after(cls, milliseconds: float | None) -> Deadline | None:
        """So long from now; None for no deadline."""
        if milliseconds is None:
            return None
        number = isinstance(milliseconds, (int, float)) and not isinstance(milliseconds, bool)
        if not number or not milliseconds > 0:
            raise InputError(f"deadline_ms must be a number above 0, got {milliseconds!r}.")
        return cls(time.perf_counter() + milliseconds / 1000)

    @property
    def left(self) -> float:
        """Seconds; none or fewer once time is up."""
        return self.at - self.clock()

    def __call__(self) -> bool:
        return self.left <= 0
