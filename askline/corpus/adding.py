"""
Files and texts into the store, in small transactions, each file reported once it is safe.

What stands unchanged on disk is not read. A file that has gone from a folder is taken out when that
folder is added again, unless the folder, or a folder above the file, could not be looked into.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import InputError, Problem
from ..text.reading import walk
from .answers import AddReport, FileReport, Outcome
from .reading import STANDARD_INPUT, Unchanged, examine, failed, text_row
from .rows import DocumentRow
from .store import Store

__all__ = ["Adding", "OnFile"]

OnFile = Callable[[FileReport], None]

_BATCH_CHARACTERS = 4_000_000
_BATCH_FILES = 500
_BATCH_SECONDS = 2.0


class Adding:
    """One call of `Corpus.add`: what waits to be written, and the sums for its report."""

    def __init__(self, store: Store, on_file: OnFile | None) -> None:
        self._store = store
        self._on_file = on_file
        self._rows: list[tuple[DocumentRow, FileReport]] = []
        self._touched: list[Unchanged] = []
        self._characters = 0
        self._began = self._flushed = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._sentences = 0
        self._problems: list[Problem] = []

    def paths(self, paths: Iterable[str | os.PathLike[str]], *, only: bool = False) -> None:
        """
        Every file under the paths.

        With `only` the corpus afterwards holds these and nothing else.
        """
        given = [os.fspath(path) for path in paths]
        seen: set[str] = set()
        unreached: list[str] = []
        for found in walk(given):
            if isinstance(found, Problem):
                name = os.path.abspath(os.path.expanduser(found.path))
                unreached.append(name)
                self._done(FileReport(name, "failed", (found,)))
            else:
                is_stream = str(found) == STANDARD_INPUT
                name = STANDARD_INPUT if is_stream else os.path.abspath(found)
                seen.add(name)
                if _is_storable(name):
                    self._file(found, name)
                else:
                    self._done(failed(name, "Its name is no UTF-8. Rename it."))
        self.flush()
        self._remove_gone(given, seen, unreached, only=only)

    def texts(self, texts: Iterable[tuple[str, str]], *, only: bool = False) -> None:
        """
        Texts by their ids.

        With `only` the corpus afterwards holds these and nothing else.
        """
        seen: set[str] = set()
        for name, text in texts:
            if not _is_storable(name):
                raise InputError(f"The id of a text must be UTF-8, got {name!r}.")
            if only:
                seen.add(name)
            row = text_row(name, text)
            known = self._store.known(name)
            if known is not None and (known.sha256, known.reading) == (row.sha256, row.reading):
                self._done(FileReport(name, "unchanged"))
            else:
                self._put(row, FileReport(name, "changed" if known else "added"))
            self._flush_in_time()
        self.flush()
        if only:
            self._remove_gone([], seen, [], only=True)

    def flush(self) -> None:
        """Write what waits, then report it."""
        rows, self._rows = self._rows, []
        touched, self._touched = self._touched, []
        self._characters = 0
        if rows:
            counts = self._store.put(row for row, _ in rows)
            for (_, report), count in zip(rows, counts, strict=True):
                self._done(FileReport(report.document, report.outcome, report.problems, count))
        if touched:
            self._store.touch(found[:3] for found in touched)
            for found in touched:
                self._done(found.report)
        self._flushed = time.monotonic()

    def report(self) -> AddReport:
        """What became of everything so far."""
        outcomes = self._outcomes
        return AddReport(
            added=outcomes["added"],
            changed=outcomes["changed"],
            unchanged=outcomes["unchanged"],
            removed=outcomes["removed"],
            failed=outcomes["failed"],
            sentences=self._sentences,
            problems=tuple(self._problems),
            seconds=time.monotonic() - self._began,
        )

    def _file(self, path: Path, name: str) -> None:
        known = self._store.known(name)
        found = examine(path, name, known)
        if isinstance(found, FileReport):
            self._done(found)
        elif isinstance(found, Unchanged):
            self._touched.append(found)
        else:
            row, problems = found
            outcome: Outcome = "failed" if row.problem else "changed" if known else "added"
            self._put(row, FileReport(name, outcome, problems))
        self._flush_in_time()

    def _put(self, row: DocumentRow, report: FileReport) -> None:
        self._rows.append((row, report))
        self._characters += row.characters

    def _flush_in_time(self) -> None:
        large = self._characters > _BATCH_CHARACTERS or len(self._rows) >= _BATCH_FILES
        if large or time.monotonic() - self._flushed > _BATCH_SECONDS:
            self.flush()

    def _remove_gone(
        self, given: Iterable[str], seen: set[str], unreached: list[str], *, only: bool
    ) -> None:
        roots = [""] if only else [_inside(path) for path in given if path != STANDARD_INPUT]
        gone = {
            name
            for root in roots
            for name in self._store.names(prefix=root)
            if name not in seen and (only or _has_gone(name, unreached))
        }
        if gone:
            self._store.remove(sorted(gone))
        for name in sorted(gone):
            self._done(FileReport(name, "removed"))

    def _done(self, report: FileReport) -> None:
        self._outcomes[report.outcome] += 1
        self._sentences += report.sentences
        self._problems.extend(report.problems)
        if self._on_file is not None:
            self._on_file(report)


def _inside(folder: str) -> str:
    """What the names of everything in the folder begin with."""
    return os.path.join(os.path.abspath(os.path.expanduser(folder)), "")


def _is_storable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _has_gone(name: str, unreached: Iterable[str]) -> bool:
    hidden = any(name == path or name.startswith(os.path.join(path, "")) for path in unreached)
    return not hidden and not os.path.exists(name)
