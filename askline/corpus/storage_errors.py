"""Turns errors of SQLite and tantivy into errors that name the file and say what to do."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import AsklineError, CorpusError

__all__ = [
    "DamagedDocumentError",
    "SearchIndexDamagedError",
    "search_read_errors",
    "search_write_errors",
    "store_errors",
]

_SAFE = "What was reported as indexed is still there."
# Keyed by the first words of SQLite's message, which have not changed in many years.
_ADVICE = {
    "database or disk is full": f"The disk is full. {_SAFE} Free some space and index again.",
    "disk I/O error": f"The disk cannot be written or read. {_SAFE} Repair it and index again.",
    # SQLite opens a file for reading if its write-ahead log cannot be created.
    "attempt to write a readonly database": "The folder or the file is read-only, or the disk is "
    "full.",
    "unable to open database file": "The file cannot be opened. Check the folder's permissions.",
    "database is locked": "Another program holds the file. Close it and try again.",
    "Cannot operate on a closed database": "The corpus was closed. Open it again.",
}


@contextmanager
def store_errors(path: Path | None) -> Iterator[None]:
    """Raise SQLite errors as a CorpusError that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        message = str(error)
        advice = next((text for key, text in _ADVICE.items() if message.startswith(key)), None)
        if advice is None:
            folder = shlex.quote(str(path.parent)) if path else "DIR"
            advice = (
                f"It is damaged. Run `askline index --verify --out {folder}`. If that fails too, "
                "restore a copy, or index the documents into a new folder."
            )
        name = path or "The store in memory"
        raise CorpusError(f"{name}: {message.rstrip('.')}. {advice}") from error


class DamagedDocumentError(CorpusError):
    """What is stored of a document differs from what was written."""

    @classmethod
    def of(cls, name: str) -> DamagedDocumentError:
        """The error for the document of that name. It does not name the folder of the index."""
        return cls(
            f"The document {name!r} is damaged in the index, so no answer is given from it. Run "
            "`askline index --verify --out DIR`, which reads its file again."
        )


class SearchIndexDamagedError(CorpusError):
    """The search index cannot be read and must be rebuilt. The corpus package handles it."""


@contextmanager
def search_read_errors(folder: Path | None) -> Iterator[None]:
    """Raise tantivy errors while reading as SearchIndexDamagedError."""
    try:
        yield
    except BaseException as error:
        if not _is_from_tantivy(error):
            raise
        name = folder or "The search index"
        raise SearchIndexDamagedError(f"{name} cannot be read: {error}.") from error


@contextmanager
def search_write_errors(folder: Path | None) -> Iterator[None]:
    """Raise tantivy errors while writing as CorpusError."""
    try:
        yield
    except BaseException as error:
        if not _is_from_tantivy(error):
            raise
        raise CorpusError(
            f"{folder or 'The search index'} cannot be written: {error}. The documents are safe in "
            "the store; the search index is completed when it is next opened."
        ) from error


def _is_from_tantivy(error: BaseException) -> bool:
    """Tantivy raises ValueError, and for a panic an exception that is not an Exception."""
    if isinstance(error, AsklineError):
        return False
    return isinstance(error, (ValueError, OSError)) or type(error).__name__ == "PanicException"
