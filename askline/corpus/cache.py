"""
The cache of `askline ask`: one index folder for each set of paths.

The folders are in the user's cache folder, and only that user can read them. Each is an ordinary
index that every question first updates to the files. When all folders together exceed the size
limit, the least recently used ones are deleted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import CorpusError
from .lock import writer_lock

__all__ = ["MAX_CACHE_BYTES", "cache_root", "cached_index_folder", "limit_cache_size"]

MAX_CACHE_BYTES = 4 * 2**30
"""The size limit of all folders together."""


def cache_root() -> Path:
    """The folder that contains the cached indexes, by the convention of the operating system."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "askline" / "folders"


def cached_index_folder(paths: Iterable[str | os.PathLike[str]]) -> Path:
    """
    The index folder of a set of paths; it is created if it is missing.

    Marks the folder as used now, and deletes others that exceed the size limit.
    """
    names = sorted({os.path.abspath(os.path.expanduser(path)) for path in paths})
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
    folder = cache_root() / digest[:32]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)
    except OSError as error:
        raise CorpusError(f"{folder} cannot be created: {error.strerror or error}.") from error
    limit_cache_size(MAX_CACHE_BYTES, keep=folder)
    return folder


def limit_cache_size(limit: int, *, keep: Path) -> None:
    """Delete the least recently used folders, but not `keep`, until all fit into `limit` bytes."""
    others = [folder for folder in _folders(keep.parent) if folder != keep]
    total = _size_bytes(keep)
    for folder in sorted(others, key=_last_used, reverse=True):
        total += _size_bytes(folder)
        if total > limit:
            try:
                with writer_lock(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            except CorpusError:
                continue  # another process is writing into it


def _folders(root: Path) -> Iterator[Path]:
    with os.scandir(root) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _size_bytes(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue  # it was deleted in the meantime
    return total
