"""
The cache of `askline ask`: one index folder for each set of paths.

The folders are in the user's cache folder, and only that user can read them. Each is an ordinary
index that every question first updates to the files. A file next to each folder, `ID.json`, has its
paths. When all folders together exceed the size limit, the least recently used ones are deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from ..engine.user_folders import CachedFolder, cached_folders, delete_oldest, user_folder
from ..errors import CorpusError
from .lock import writer_lock

__all__ = [
    "MAX_CACHE_BYTES",
    "cache_root",
    "cached_index_folder",
    "cached_indexes",
    "delete_cached_index",
]

MAX_CACHE_BYTES = 4 * 2**30
"""The size limit of all folders together."""


def cache_root() -> Path:
    """The folder that contains the cached indexes, in the cache folder of the user."""
    return user_folder("cache") / "folders"


def cached_index_folder(
    paths: Iterable[str | os.PathLike[str]], *, options: Iterable[str] = ()
) -> Path:
    """
    The index folder of a set of paths; it is created if it is missing.

    Different `options` of reading them have different folders.

    Marks the folder as used now, and deletes others that exceed the size limit.
    """
    names = sorted({os.path.abspath(os.path.expanduser(path)) for path in paths})
    key = [*names, *sorted(options)]
    digest = hashlib.sha256("\0".join(key).encode("utf-8", "surrogateescape")).hexdigest()
    folder = cache_root() / digest[:32]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)
        if not _paths_file(folder).exists():
            _paths_file(folder).touch(mode=0o600)
            _paths_file(folder).write_text(json.dumps({"paths": names}), encoding="ascii")
    except OSError as error:
        raise CorpusError(f"{folder} cannot be created: {error.strerror or error}.") from error
    delete_oldest(MAX_CACHE_BYTES, keep=folder, delete=delete_cached_index)
    return folder


def cached_indexes() -> list[CachedFolder]:
    """All indexes of the cache, the last used first."""
    return cached_folders(cache_root(), _recorded_paths)


def delete_cached_index(folder: str | os.PathLike[str]) -> bool:
    """Delete an index of the cache; False if another process is writing into it."""
    try:
        with writer_lock(Path(folder)):
            shutil.rmtree(folder, ignore_errors=True)
            _paths_file(Path(folder)).unlink(missing_ok=True)
    except CorpusError:
        return False
    return True


def _paths_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


def _recorded_paths(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(map(str, json.loads(_paths_file(folder).read_bytes())["paths"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ()
