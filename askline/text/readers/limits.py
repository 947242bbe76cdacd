"""What reading one file may cost: time, memory and size."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import InputError

__all__ = ["DEFAULT_LIMITS", "MAX_FILE_BYTES", "ReadLimits"]

MAX_FILE_BYTES = 256 * 2**20
"""The default limit for one file, because its text is held in memory more than once."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What reading one file may cost."""

    seconds: float = 30.0
    megabytes: int = 1024
    """Memory on top of that of an idle reader process. Enforced on Linux and other Unix systems."""
    max_bytes: int = MAX_FILE_BYTES
    """Size of the file, and of what a packed format unpacks to."""

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise InputError(f"`read_seconds` must be a positive number, got {self.seconds!r}.")
        if self.megabytes < 1:
            raise InputError(f"`read_megabytes` must be a positive integer, got {self.megabytes}.")


DEFAULT_LIMITS = ReadLimits()
