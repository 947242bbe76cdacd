"""Files and folders to documents: what is left out, in which order, and what went wrong."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...errors import DataError, MissingExtraError, Problem
from .document import Document
from .reading import MAX_BYTES, kind_of, read_document

__all__ = ["read_documents", "walk"]

_LEFT_OUT = frozenset(("node_modules", "__pycache__", "CVS"))
_ENVIRONMENT = "pyvenv.cfg"  # the file that every virtual environment of Python has

Paths = Iterable[str | os.PathLike[str]]


def walk(
    paths: Paths, *, hidden: bool = False, every_kind: bool = False
) -> Iterator[Path | Problem]:
    """
    The files under the paths, each once, in the order of their names; what cannot be reached.

    A file that is named is taken whatever it is called; folders give the files of known kinds,
    without hidden ones, version control, virtual environments and installed packages. `hidden`
    takes hidden names too, `every_kind` all suffixes, to be read as plain text. Links are followed,
    in circles too, for every folder and file counts by its real path. `-` comes back as it is.
    """
    seen: set[str] = set()
    for given in paths:
        if os.fspath(given) == "-":
            if "-" not in seen:
                seen.add("-")
                yield Path("-")
            continue
        yield from _walk_one(Path(given).expanduser(), seen, hidden, every_kind)


def read_documents(
    paths: Paths,
    *,
    hidden: bool = False,
    every_kind: bool = False,
    text_field: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Iterator[Document | Problem]:
    """Each file that `walk` finds as a document, or what is wrong with it; rows left out too."""
    for found in walk(paths, hidden=hidden, every_kind=every_kind):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            document = read_document(found, text_field=text_field, max_bytes=max_bytes)
        except DataError as error:
            yield from error.problems
        except MissingExtraError as error:
            yield Problem(str(found), 0, str(error))
        else:
            yield document
            yield from document.problems


def _walk_one(
    path: Path, seen: set[str], hidden: bool, every_kind: bool
) -> Iterator[Path | Problem]:
    stack = [path]  # not recursion: folders may lie deeper than calls
    while stack:
        here = stack.pop()
        try:
            mode = here.stat().st_mode
            real = os.path.realpath(here)
            if real in seen:
                continue
            seen.add(real)
            if stat.S_ISDIR(mode):
                stack += reversed(_inside(here, hidden))
                continue
        except OSError as error:
            if here is path or kind_of(here) or _is_folder(here):
                yield Problem(str(here), 0, _reason(here, error))
            continue
        named = here is path
        if not (named or every_kind or kind_of(here)):
            continue
        if stat.S_ISREG(mode):
            yield here
        elif named or kind_of(here):
            yield Problem(str(here), 0, "It is no file but a device or a pipe. Use - for a pipe.")


def _inside(folder: Path, hidden: bool) -> list[Path]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    if _ENVIRONMENT in names:
        return []
    return [
        folder / name
        for name in names
        if name not in _LEFT_OUT and (hidden or not name.startswith("."))
    ]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _reason(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        if path.is_symlink():
            return "It is a link that leads nowhere. Remove it or mend it."
        return "There is no such file. Check the path."
    return f"It cannot be read: {error.strerror or error}."
