"""
The ids of documents: which names are allowed, and how a file gets its id.

The id of a file is the last part of its path, with `/` between names: relative to the folder that
was given, so that ids do not tell where a folder is on the machine. An id stays the same as long
as the file is stored.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Container, Iterable
from pathlib import PurePath

from .document_store import DocumentStore

__all__ = ["FileIds", "absolute_path", "id_problem"]

_NOT_IN_IDS = frozenset(("Cc", "Zl", "Zp"))  # control characters, line and paragraph separators


def id_problem(name: str) -> str | None:
    """
    Why a name cannot be the id of a document; None if it can.

    An id is UTF-8 without control characters and line breaks, so that it fits into one line of
    output and into the path of a URL.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    if name.isprintable():  # the usual case, and much faster than a look at each character
        return None
    found = next((each for each in name if unicodedata.category(each) in _NOT_IN_IDS), None)
    return None if found is None else f"contains the control character U+{ord(found):04X}"


def absolute_path(path: str | os.PathLike[str]) -> str:
    """The path under which the store remembers a file. Links are not resolved."""
    return os.path.abspath(os.path.expanduser(path))


class FileIds:
    """
    Chooses ids for files that are not stored yet.

    The path relative to the first folder that was ever given to the store alone; for other folders
    with the folder's own name before it. A file that was given itself, outside these folders, has
    the path as it was given, or its name if that path is absolute or leaves the current folder. If
    an id is taken by another document, the names of further parent folders are put before it.
    """

    def __init__(self, store: DocumentStore, given: Iterable[str]) -> None:
        self._store = store
        self._is_new = store.is_new()  # then all ids are those that the caller has chosen
        self._given = {absolute_path(path): path for path in given}
        self._roots = [(_as_prefix(root), names) for root, names in store.roots()]
        folders = [path for path in self._given if os.path.isdir(path)]
        new = [folder for folder in folders if self._parts_in_root(_as_prefix(folder)) is None]
        for folder in new:
            own_names = 1 if self._roots or len(new) > 1 else 0
            store.add_root(folder, own_names)
            self._roots.append((_as_prefix(folder), own_names))

    def choose(self, path: str, taken: Container[str]) -> str:
        """An id for the file at an absolute path: unused in the store, and not in `taken`."""
        names, count = self._names(path)
        while count <= len(names):
            chosen = "/".join(names[-count:])
            if chosen not in taken and (self._is_new or self._store.document_id(chosen) is None):
                return chosen
            count += 1
        return path

    def preferred(self, path: str) -> str:
        """The id of the file at an absolute path if no other document had it."""
        names, count = self._names(path)
        return "/".join(names[-count:])

    def _names(self, path: str) -> tuple[list[str], int]:
        """The names in a path, and how many of the last ones are its id."""
        names = path.split(os.sep)[1:]  # without the root of the file system, or the drive
        return names, self._parts_in_root(path) or self._parts_as_given(path)

    def _parts_in_root(self, path: str) -> int | None:
        """How many of the last names of a path form its id, by the first root that contains it."""
        for root, own_names in self._roots:
            if path.startswith(root):
                return own_names + path.count(os.sep, len(root)) + 1
        return None

    def _parts_as_given(self, path: str) -> int:
        given = os.path.normpath(self._given.get(path, ""))
        if os.path.isabs(given) or given.startswith((os.pardir, "~")):
            return 1
        return len(PurePath(given).parts) or 1


def _as_prefix(folder: str) -> str:
    """The common prefix of the paths of all files in a folder."""
    return os.path.join(folder, "")
