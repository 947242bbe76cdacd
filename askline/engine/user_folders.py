"""
The folders of askline in the home folder of the user: cache, configuration and state.

The cache has a folder for each index and for the graphs of each model, with a limit of their size.
Every command imports this module, so it imports nothing that takes time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["CachedFolder", "cached_folders", "delete_oldest", "subfolders", "user_folder"]


def user_folder(kind: Literal["cache", "config", "state"]) -> Path:
    """A folder of askline for this user, by the convention of the operating system."""
    if sys.platform == "win32":
        variable, part = ("APPDATA", "Roaming") if kind == "config" else ("LOCALAPPDATA", "Local")
        base = os.environ.get(variable) or f"~/AppData/{part}"
    elif sys.platform == "darwin" and kind != "config":
        base = "~/Library/Caches" if kind == "cache" else "~/Library/Application Support"
    else:
        part = ".local/state" if kind == "state" else f".{kind}"
        base = os.environ.get(f"XDG_{kind.upper()}_HOME") or f"~/{part}"
    return Path(base).expanduser() / "askline"


@dataclass(frozen=True, slots=True)
class CachedFolder:
    """An index of the cache, or the graphs of a model."""

    folder: str
    paths: tuple[str, ...]
    """The files and folders that it was made from; empty if they are not recorded."""
    size_bytes: int
    age_seconds: float
    """Seconds since it was used."""


def cached_folders(
    root: Path, recorded_paths: Callable[[Path], tuple[str, ...]]
) -> list[CachedFolder]:
    """The folders of a cache, the last used first."""
    now = time.time()
    return [
        CachedFolder(str(one), recorded_paths(one), _size_bytes(one), now - _last_used(one))
        for one in subfolders(root)
    ]


def delete_oldest(limit: int, *, keep: Path, delete: Callable[[Path], object]) -> None:
    """Delete the least recently used folders beside `keep` until all fit into `limit` bytes."""
    total = _size_bytes(keep)
    for folder in subfolders(keep.parent):
        if folder != keep:
            total += _size_bytes(folder)
            if total > limit:
                delete(folder)


def subfolders(root: Path) -> list[Path]:
    """The folders in a folder, the last used first; none if it is missing."""
    found: list[Path] = []
    with suppress(OSError), os.scandir(root) as entries:
        found = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    return sorted(found, key=_last_used, reverse=True)


def _last_used(folder: Path) -> float:
    """As `time.time`; 0 if the folder is gone."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _size_bytes(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # it was deleted in the meantime
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
