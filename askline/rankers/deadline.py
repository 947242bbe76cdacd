"""
Deadlines, and how much work fits into the time that is left.

A few of the most promising candidates at full depth are worth more than many that only the first
classifier has scored (figures: research/notes/schedules.md). So a cascade with a deadline
begins no more candidates than it can take to the end, by its estimate of the encoder's throughput.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InputError

__all__ = ["Deadline", "Stop", "Throughput"]

Stop = Callable[[], bool]
"""Returns True once work must end; called between batches."""

_RESERVE = 0.1  # share of the time left for what the estimate does not cover, such as other load
_DECAY = 0.8


@dataclass(frozen=True, slots=True)
class Deadline:
    """A `Stop` by the clock."""

    at: float
    clock: Callable[[], float] = time.perf_counter

    @classmethod
    def after(cls, milliseconds: float | None) -> Deadline | None:
        """The deadline that many milliseconds from now; None for None."""
        if milliseconds is None:
            return None
        is_number = isinstance(milliseconds, (int, float)) and not isinstance(milliseconds, bool)
        if not is_number or not milliseconds > 0:
            raise InputError(f"deadline_ms must be a positive number, got {milliseconds!r}.")
        return cls(time.perf_counter() + milliseconds / 1000)

    def or_earlier(self, other: Stop | None) -> Stop:
        """Whichever of the two comes first."""
        if other is None:
            return self
        if isinstance(other, Deadline):
            return self if self.left <= other.left else other
        return lambda: self() or other()

    @property
    def left(self) -> float:
        """Seconds until the deadline; zero or negative once it has passed."""
        return self.at - self.clock()

    def __call__(self) -> bool:
        return self.left <= 0


class Throughput:
    """
    Running estimate of encoder speed, in character-layers per second, tokenizing included.

    Characters, because tokens are not known before the work of tokenizing is done.
    """

    def __init__(self, seconds_per_unit: float | None = None) -> None:
        self.seconds_per_unit = seconds_per_unit
        """Seconds per character and layer; None before the first measurement."""

    def update(self, work: float, seconds: float) -> None:
        """Average the new measurement with the old estimate."""
        if work > 0:
            now = seconds / work
            old = self.seconds_per_unit
            self.seconds_per_unit = now if old is None else (old + now) / 2

    def decay(self) -> None:
        """
        Raise the estimated speed after a call in which nothing fitted.

        Without this, one slow call would keep all later calls from beginning anything.
        """
        if self.seconds_per_unit is not None:
            self.seconds_per_unit *= _DECAY

    def capacity(self, seconds: float) -> float:
        """Work that fits into `seconds`; infinite before the first measurement."""
        if self.seconds_per_unit is None:
            return math.inf
        return max(0.0, (1 - _RESERVE) * seconds) / max(self.seconds_per_unit, 1e-12)
