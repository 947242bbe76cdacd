"""A vector file in a form that opens at once: words in a text file, rows memory-mapped."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["cached"]

_Read = Callable[[], tuple[list[str], NDArray[np.float32]]]


def cached(
    file: Path, folder: Path, read: _Read, *settings: str
) -> tuple[list[str], NDArray[np.float32]]:
    """
    What `read` gives for the file, kept in the folder for the next time.

    The entry is found by the file's full path, size and time of change: a file that was written
    anew is read anew. Entries are never removed here.
    """
    entry = folder / f"{file.name}-{_identity(file, settings)}"
    if not entry.is_dir():
        _keep(entry, *read())
    words = (entry / "words.txt").read_text(encoding="utf-8").split("\n")
    return words, np.load(entry / "rows.npy", mmap_mode="r", allow_pickle=False)


def _identity(file: Path, settings: tuple[str, ...]) -> str:
    state = file.stat() if file.exists() else None
    parts = [str(file.resolve()), *settings]
    if state is not None:
        parts += [str(state.st_size), str(state.st_mtime_ns)]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _keep(entry: Path, words: list[str], rows: NDArray[np.float32]) -> None:
    """Written beside, then moved: two processes may do this at once, and the first one wins."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=entry.parent, prefix=".draft-"))
    try:
        (draft / "words.txt").write_text("\n".join(words), encoding="utf-8")
        np.save(draft / "rows.npy", rows, allow_pickle=False)
        draft.rename(entry)
    except OSError:
        if not entry.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
