"""
What `askline ask` remembers between two questions about the same paths.

One index folder for each set of paths, below the user's own cache folder, readable by that user
alone. It is an index like any other: each question first brings it in step with the files. The
folders that were not used for longest go when all of them together become too large.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import CorpusError
from .lock import writing

__all__ = ["cache_root", "cached_index_folder", "limit_cache_size"]

MAX_CACHE_BYTES = 4 * 2**30
"""Of all folders together."""


def cache_root() -> Path:
    """The user's cache folder for askline, by the customs of the system."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "askline" / "folders"


def cached_index_folder(paths: Iterable[str | os.PathLike[str]]) -> Path:
    """Where the index of these paths is kept; made, marked as used, and the oldest others gone."""
    names = sorted({os.path.abspath(os.path.expanduser(path)) for path in paths})
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
    folder = cache_root() / digest[:32]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)
    except OSError as error:
        raise CorpusError(f"{folder} cannot be made: {error.strerror or error}.") from error
    limit_cache_size(MAX_CACHE_BYTES, spare=folder)
    return folder


def limit_cache_size(limit: int, *, spare: Path) -> None:
    """Remove the folders used longest ago until the rest fit; one in use stays."""
    others = [each for each in _folders(spare.parent) if each != spare]
    total = _bytes(spare)
    for folder in sorted(others, key=_last_used, reverse=True):
        total += _bytes(folder)
        if total > limit:
            try:
                with writing(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            except CorpusError:
                continue  # somebody is writing into it


def _folders(root: Path) -> Iterator[Path]:
    with os.scandir(root) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _bytes(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue  # it went in between
    return total
