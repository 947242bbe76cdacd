"""What SQLite and tantivy say when something is wrong, as errors that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import AsklineError, CorpusError

__all__ = [
    "SearchIndexDamagedError",
    "search_read_errors",
    "search_write_errors",
    "store_errors",
]

_SAFE = "What was reported as indexed is still there."
# By the first words of SQLite's message, which have not changed in many years.
_ADVICE = {
    "database or disk is full": f"The disk is full. {_SAFE} Make room and index again.",
    "disk I/O error": f"The disk cannot be written or read. {_SAFE} Mend it and index again.",
    "attempt to write a readonly database": "The folder or the file may not be written.",
    "unable to open database file": "The file cannot be opened. Check the folder's permissions.",
    "database is locked": "Another program holds the file. Close it and try again.",
    "Cannot operate on a closed database": "The corpus was closed. Open it again.",
}


@contextmanager
def store_errors(path: Path | None) -> Iterator[None]:
    """Raise what goes wrong inside as a CorpusError that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        message = str(error)
        advice = next((text for said, text in _ADVICE.items() if message.startswith(said)), None)
        if advice is None:
            advice = "It is damaged. Put a copy back, or index the documents into a new folder."
        place = path or "The store in memory"
        raise CorpusError(f"{place}: {message.rstrip('.')}. {advice}") from error


class SearchIndexDamagedError(CorpusError):
    """The search index cannot be read; it has to be built anew."""


@contextmanager
def search_read_errors(folder: Path | None) -> Iterator[None]:
    """Raise what tantivy cannot read as SearchIndexDamagedError."""
    try:
        yield
    except BaseException as error:
        if not _is_tantivys(error):
            raise
        raise SearchIndexDamagedError(
            f"{folder or 'The search index'} cannot be read: {error}."
        ) from error


@contextmanager
def search_write_errors(folder: Path | None) -> Iterator[None]:
    """Raise what tantivy cannot write as CorpusError."""
    try:
        yield
    except BaseException as error:
        if not _is_tantivys(error):
            raise
        raise CorpusError(
            f"{folder or 'The search index'} cannot be written: {error}. The documents are safe in "
            "the store; the search index is completed when it is next opened."
        ) from error


def _is_tantivys(error: BaseException) -> bool:
    """Its errors come as ValueError, and a panic as an exception that is no Exception."""
    if isinstance(error, AsklineError):
        return False
    return isinstance(error, (ValueError, OSError)) or type(error).__name__ == "PanicException"
