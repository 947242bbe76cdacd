"""
The writer lock: one writer per index folder, among processes and among threads.

The lock is an operating system lock on an open file, so the system releases it when the process
ends, however it ends. The file contains the id of the process that holds it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from ..errors import CorpusError

__all__ = ["LOCK_NAME", "BusyError", "lock_holder", "writer_lock"]

LOCK_NAME = "writer.lock"
_POLL_SECONDS = 0.05

if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = 2**30  # never written: on Windows a locked byte cannot be read

    def _try_lock(stream: FileIO) -> bool:
        stream.seek(_LOCKED_BYTE)
        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(stream: FileIO) -> bool:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class BusyError(CorpusError):
    """Another process or thread is writing into the folder."""


@contextmanager
def writer_lock(folder: Path, *, timeout: float = 0.0) -> Iterator[None]:
    """Hold the writer lock of a folder; BusyError if it is still taken after `timeout` seconds."""
    give_up_at = time.monotonic() + timeout
    try:
        stream = (folder / LOCK_NAME).open("a+b", buffering=0)
    except OSError as error:
        raise CorpusError(f"{folder} cannot be written: {error.strerror or error}.") from error
    with stream:  # closing the file releases the lock
        while not _try_lock(stream):
            if time.monotonic() >= give_up_at:
                raise BusyError(
                    f"{folder} is being written by process {_process_id(stream) or 'unknown'}. "
                    "Wait for it to end, then try again."
                )
            time.sleep(_POLL_SECONDS)
        # On a full disk the lock is held without the id, so that documents can be removed. Whatever
        # cannot be written is reported by the store, which names its file.
        with suppress(OSError):
            stream.truncate(0)
            stream.write(str(os.getpid()).encode())
        try:
            yield
        finally:
            with suppress(OSError):
                stream.truncate(0)


def lock_holder(folder: Path) -> int | None:
    """The id of the process that holds the writer lock; None if the lock is free."""
    try:
        with (folder / LOCK_NAME).open("rb", buffering=0) as stream:
            return None if _try_lock(stream) else _process_id(stream)
    except OSError:
        return None


def _process_id(stream: FileIO) -> int | None:
    stream.seek(0)
    text = stream.read(20).decode("ascii", "replace")
    return int(text) if text.isdecimal() else None
