"""
One writer at a time, between processes and within one.

The lock is the operating system's on an open file, so it goes with the process that held it,
however that ended. The file says which process that is.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import CorpusError

__all__ = ["LOCK_NAME", "BusyError", "lock_holder", "writing"]

LOCK_NAME = "writer.lock"
_PAUSE_SECONDS = 0.05

if sys.platform == "win32":
    import msvcrt

    _BEYOND = 2**30  # a byte that is never written: on Windows a locked byte cannot be read

    def _try_lock(stream: BinaryIO) -> bool:
        stream.seek(_BEYOND)
        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(stream: BinaryIO) -> bool:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class BusyError(CorpusError):
    """Another writes into the folder just now."""


@contextmanager
def writing(folder: Path, *, patience: float = 0.0) -> Iterator[None]:
    """Hold the folder's writer lock; BusyError where another has it after `patience` seconds."""
    give_up = time.monotonic() + patience
    try:
        stream = (folder / LOCK_NAME).open("a+b")
    except OSError as error:
        raise CorpusError(f"{folder} cannot be written: {error.strerror or error}.") from error
    with stream:  # closing it lets go of the lock
        while not _try_lock(stream):
            if time.monotonic() >= give_up:
                raise BusyError(
                    f"{folder} is being written by process {_process(stream) or 'unknown'}. "
                    "Wait for it to end, then try again."
                )
            time.sleep(_PAUSE_SECONDS)
        stream.seek(0)
        stream.truncate()
        stream.write(str(os.getpid()).encode())
        stream.flush()
        try:
            yield
        finally:
            stream.truncate(0)


def lock_holder(folder: Path) -> int | None:
    """The process that writes into the folder just now, if any."""
    try:
        with (folder / LOCK_NAME).open("rb") as stream:
            return None if _try_lock(stream) else _process(stream)
    except OSError:
        return None


def _process(stream: BinaryIO) -> int | None:
    stream.seek(0)
    text = stream.read(20).decode("ascii", "replace")
    return int(text) if text.isdecimal() else None
