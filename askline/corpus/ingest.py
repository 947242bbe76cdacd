"""
Ingestion: files and texts into the store, in small transactions.

Each file is reported once it is stored. A file that has not changed is not read. A file that is
gone from a folder is removed when that folder is added again, unless the folder, or a folder above
the file, could not be read. Files that are not read are counted by reason and kind, for reports and
for the store.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from ..errors import InputError, NotReadReason, Problem
from ..text.readers import (
    FileSelection,
    ReaderPool,
    ReadLimits,
    SkippedFile,
    SkippedLink,
    find_files,
)
from ..text.readers.folders import is_below
from .document_records import (
    STANDARD_INPUT,
    FileIds,
    NewDocument,
    StartedFile,
    UnchangedFile,
    absolute_path,
    failed_report,
    id_problem,
    read_standard_input,
    start_reading,
    text_record,
)
from .document_store import DocumentStore
from .results import AddReport, FileReport, NotReadFiles, Outcome
from .schema import DocumentRecord, FileState, SkippedRecord

__all__ = [
    "Ingestion",
    "NotReadCounts",
    "OnFile",
    "PathInput",
    "Share",
    "SkippedCounts",
    "TextInput",
    "parse_inputs",
    "parse_paths",
]


class NotReadCounts:
    """Files that were not read, by reason and kind."""

    def __init__(self) -> None:
        self._counts: dict[tuple[NotReadReason, str], tuple[int, str]] = {}

    def add(
        self,
        path: str,
        reason: NotReadReason,
        *,
        is_folder: bool = False,
        kind: str = "",
        count: int = 1,
    ) -> None:
        """Count one file, or several of a known kind of which `path` is one."""
        key = reason, kind or file_suffix(path, is_folder=is_folder)
        before, example = self._counts.get(key, (0, path))
        self._counts[key] = before + count, example

    def files(self) -> tuple[NotReadFiles, ...]:
        """The counts: the most frequent reason first, and of each reason the most frequent kind."""
        found = [
            NotReadFiles(reason, kind, count, example)
            for (reason, kind), (count, example) in self._counts.items()
        ]
        totals: dict[NotReadReason, int] = {}
        for each in found:
            totals[each.reason] = totals.get(each.reason, 0) + each.count
        found.sort(key=lambda each: (-totals[each.reason], each.reason, -each.count, each.kind))
        return tuple(found)


class SkippedCounts:
    """What was left out below each path that was added."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = set(roots)
        self._counts: dict[str, NotReadCounts] = {}

    def add(self, path: str, skipped: SkippedFile) -> None:
        """Count a file or folder by its absolute path."""
        root = path
        while root not in self._roots and os.path.dirname(root) != root:
            root = os.path.dirname(root)
        counts = self._counts.setdefault(root, NotReadCounts())
        counts.add(path, skipped.reason, is_folder=skipped.is_folder)

    def merged(self, stored: Iterable[SkippedRecord]) -> list[SkippedRecord]:
        """The records of these paths, and the stored ones of others."""
        kept = [record for record in stored if not self._is_covered(record.root)]
        new = [
            SkippedRecord(root, each.reason, each.kind, each.count, each.example)
            for root, counts in self._counts.items()
            for each in counts.files()
        ]
        return sorted([*kept, *new])

    def _is_covered(self, root: str) -> bool:
        """Whether a path, or a folder above it, was added now."""
        while root not in self._roots:
            above = os.path.dirname(root)
            if above == root:
                return False
            root = above
        return True


def file_suffix(path: str, *, is_folder: bool = False) -> str:
    """The kind of a file in reports."""
    if is_folder:
        return "folder"
    name = os.path.basename(path)
    return os.path.splitext(name)[1].lower() or "no suffix"


PathInput = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
TextInput = Mapping[str, str] | Iterable[tuple[str, str]]
OnFile = Callable[[FileReport], None]

# A transaction ends when one of these is exceeded.
_BATCH_CHARACTERS = 4_000_000
_BATCH_FILES = 1000
_BATCH_SECONDS = 2.0
# Files that are read ahead, while others are written.
_AHEAD_FILES_PER_PROCESS = 250
_AHEAD_BYTES = 16 * 2**20


class _FoundFile(NamedTuple):
    found: Path
    name: str
    path: str
    """The absolute path, which the store remembers."""
    stored: FileState | None


class _StartedEntry(NamedTuple):
    file: StartedFile
    is_known: bool


class Share(NamedTuple):
    """A part of the files under some paths: those of one shard out of several."""

    number: int
    """From 0."""
    shards: int

    @classmethod
    def of(cls, found: Path | Problem | SkippedFile, ids: FileIds, shards: int) -> Share:
        """
        The share of a file, by the id that it would have.

        Files that want the same id are in one share, so that ids are unique over all shards.
        """
        name = ids.preferred(os.path.abspath(found)) if isinstance(found, Path) else found.path
        return cls(crc32(name.encode("utf-8", "surrogateescape")) % shards, shards)

    def contains(self, found: Path | Problem | SkippedFile, ids: FileIds) -> bool:
        """Whether a file, or the report about one, belongs to this share."""
        return Share.of(found, ids, self.shards) == self


class Ingestion:
    """One call of `Corpus.add`: documents that wait to be written, and the counts of its report."""

    def __init__(
        self,
        store: DocumentStore,
        on_file: OnFile | None,
        *,
        limits: ReadLimits | None = None,
        selection: FileSelection | None = None,
        columns: Sequence[str] = (),
        share: Share | None = None,
    ) -> None:
        self._store = store
        self._on_file = on_file
        self._share = share
        self._limits = limits or ReadLimits()
        self._selection = selection or FileSelection()
        self._columns = columns
        self._started_files: deque[_StartedEntry] = deque()
        self._started_bytes = 0
        self._waiting: dict[str, tuple[DocumentRecord, FileReport]] = {}  # by id
        self._touched: list[UnchangedFile] = []
        self._characters = 0
        self._started = self._flushed = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._sentences = 0
        self._problems: list[Problem] = []
        self._named: set[str] = set()  # paths that the caller named
        self._not_read = NotReadCounts()

    def add_paths(self, paths: Iterable[str | os.PathLike[str]], *, only: bool = False) -> None:
        """Add every file under the paths. With `only`, everything else is removed."""
        given = [os.fspath(path) for path in paths]
        self._named = {os.path.normpath(os.path.expanduser(path)) for path in given}
        ids = FileIds(self._store, (path for path in given if path != STANDARD_INPUT))
        is_new = self._store.is_new()
        seen: set[str] = set()
        unreachable: list[str] = []
        links: list[str] = []
        left_out: list[str] = []
        skipped = SkippedCounts(absolute_path(path) for path in given)
        with ReaderPool(self._limits, columns=self._columns) as pool:
            for found in find_files(given, self._selection):
                if self._share is not None and not self._share.contains(found, ids):
                    continue
                if isinstance(found, SkippedFile):
                    left_out.append(absolute_path(found.path))
                    skipped.add(left_out[-1], found)
                    self._not_read.add(found.path, found.reason, is_folder=found.is_folder)
                    self._finish(FileReport(found.path, "skipped", reason=found.reason))
                elif isinstance(found, Problem):
                    places = links if isinstance(found, SkippedLink) else unreachable
                    places.append(absolute_path(found.path))
                    self._finish(FileReport(found.path, "failed", (found,)))
                elif str(found) == STANDARD_INPUT:
                    seen.add(STANDARD_INPUT)
                    self._add_standard_input()
                elif problem := id_problem(path := os.path.abspath(found)):
                    reason = f"Its name {problem}. Rename it."
                    self._finish(failed_report(found, str(found), reason))
                else:
                    known = None if is_new else self._store.file_at(path)
                    name, stored = known or (ids.choose(path, seen), None)
                    seen.add(name)
                    self._add_file(_FoundFile(found, name, path, stored), pool)
            while self._started_files:
                self._finish_reading()
        self.flush()
        self._store.replace_skipped(skipped.merged(() if only else self._store.skipped()))
        self._remove_missing(given, seen, set(unreachable), {*links, *left_out}, only=only)

    def add_texts(self, texts: Iterable[tuple[str, str]], *, only: bool = False) -> None:
        """Add texts by their ids. With `only`, everything else is removed."""
        seen: set[str] = set()
        for name, text in texts:
            if only:
                seen.add(name)
            record = text_record(name, text)
            if name in self._waiting:  # an earlier text with this id, which is not stored yet
                self.flush()
            stored = self._store.file_state(name)
            current = (record.sha256, record.reader_version)
            if stored is not None and (stored.sha256, stored.reader_version) == current:
                self._finish(FileReport(name, "unchanged"))
            else:
                self._put(record, FileReport(name, "changed" if stored else "added"))
            self._flush_if_due()
        self.flush()
        if only:
            self._remove_missing([], seen, set(), set(), only=True)

    def flush(self) -> None:
        """Write the waiting documents, then report them."""
        waiting, self._waiting = self._waiting.values(), {}
        touched, self._touched = self._touched, []
        self._characters = 0
        if waiting:
            counts = self._store.put(record for record, _ in waiting)
            for (record, report), count in zip(waiting, counts, strict=True):
                size = record.size or 0
                self._finish(
                    FileReport(report.document, report.outcome, report.problems, count, size=size)
                )
        if touched:
            self._store.touch(file[:3] for file in touched)
            for file in touched:
                self._finish(file.report)
        self._flushed = time.monotonic()

    def report(self) -> AddReport:
        """The counts so far."""
        outcomes = self._outcomes
        return AddReport(
            added=outcomes["added"],
            changed=outcomes["changed"],
            unchanged=outcomes["unchanged"],
            removed=outcomes["removed"],
            failed=outcomes["failed"],
            sentences=self._sentences,
            problems=tuple(self._problems),
            seconds=time.monotonic() - self._started,
            skipped=outcomes["skipped"],
            not_read=self._not_read.files(),
        )

    def _add_standard_input(self) -> None:
        stored = self._store.file_state(STANDARD_INPUT)
        self._add_result(read_standard_input(stored), is_known=stored is not None)

    def _add_file(self, file: _FoundFile, pool: ReaderPool) -> None:
        """Start to add a file."""
        started = start_reading(file.found, file.name, file.stored, pool, source=file.path)
        if isinstance(started, UnchangedFile):
            self._touched.append(started)
            self._flush_if_due()
        elif isinstance(started, FileReport):
            self._finish(started)
            self._flush_if_due()
        else:
            self._started_files.append(_StartedEntry(started, file.stored is not None))
            self._started_bytes += started.state.st_size
        most = _AHEAD_FILES_PER_PROCESS * pool.processes
        while len(self._started_files) > most or self._started_bytes > _AHEAD_BYTES:
            self._finish_reading()

    def _finish_reading(self) -> None:
        """Wait for the file that was started first."""
        entry = self._started_files.popleft()
        self._started_bytes -= entry.file.state.st_size
        self._add_result(entry.file.finish(), is_known=entry.is_known)

    def _add_result(self, result: NewDocument | FileReport, *, is_known: bool) -> None:
        if isinstance(result, FileReport):
            self._finish(result)
        else:
            record, problems = result
            outcome: Outcome = "failed" if record.problem else "changed" if is_known else "added"
            self._put(record, FileReport(record.name, outcome, problems))
        self._flush_if_due()

    def _put(self, record: DocumentRecord, report: FileReport) -> None:
        self._waiting[record.name] = record, report
        self._characters += record.characters

    def _flush_if_due(self) -> None:
        is_large = self._characters > _BATCH_CHARACTERS or len(self._waiting) >= _BATCH_FILES
        if is_large or time.monotonic() - self._flushed > _BATCH_SECONDS:
            self.flush()

    def _remove_missing(
        self,
        given: Iterable[str],
        seen: set[str],
        unreachable: set[str],
        left_out: set[str],
        *,
        only: bool,
    ) -> None:
        """
        Remove stored files that are gone from the added folders; with `only`, all not seen.

        Files that were once read and are now left out are removed too: behind a link that is
        skipped, in a `.gitignore`, or excluded.
        """
        if only:
            missing = set(self._store.names()) - seen
        else:
            folders = [absolute_path(path) for path in given if path != STANDARD_INPUT]
            missing = {
                name
                for folder in folders
                for name, path in self._store.files(prefix=os.path.join(folder, ""))
                if name not in seen and (is_below(path, left_out) or _is_deleted(path, unreachable))
            }
        if missing:
            self._store.remove(sorted(missing))
        for name in sorted(missing):
            self._finish(FileReport(name, "removed"))

    def _finish(self, report: FileReport) -> None:
        if report.outcome == "failed":
            report = self._classified(report)
        self._outcomes[report.outcome] += 1
        self._sentences += report.sentences
        self._problems.extend(report.problems)
        if self._on_file is not None:
            self._on_file(report)

    def _classified(self, report: FileReport) -> FileReport:
        """
        A failed file with its reason.

        A file of a folder that turns out to have no text is skipped, and is no problem.
        """
        first = report.problems[0]
        self._not_read.add(first.path, first.reason)
        is_named = os.path.normpath(first.path) in self._named
        if first.reason == "empty" and not is_named:
            return FileReport(report.document, "skipped", reason=first.reason)
        return replace(report, reason=first.reason)


def _is_deleted(path: str, unreachable: set[str]) -> bool:
    """Whether a file is gone; a file below an unreachable folder may still exist."""
    return not is_below(path, unreachable) and not os.path.exists(path)


def parse_inputs(source: PathInput | TextInput) -> list[str] | Iterator[tuple[str, str]]:
    """Paths as a list, or an iterator over texts, which may not fit into memory together."""
    if isinstance(source, Mapping):
        return map(_parse_text, source.items())
    if isinstance(source, (str, os.PathLike)):
        _refuse_text(source)
        return [os.fspath(source)]
    if not isinstance(source, Iterable):
        raise InputError(f"Expected paths, or texts with ids, got {_shorten(source)}.")
    items = iter(source)
    first = list(next(zip(items), ()))  # the first item, or nothing
    if first and isinstance(first[0], (tuple, list)):
        return map(_parse_text, chain(first, items))
    paths = list(chain(first, items))
    for item in paths:
        _refuse_text(item)
    return [_parse_path(item) for item in paths]


def _refuse_text(item: object) -> None:
    """InputError for a sentence that was given in place of a path."""
    if not isinstance(item, str) or os.path.lexists(item):
        return
    if " " in item and item.rstrip().endswith((".", "!", "?", "…")):
        raise InputError(
            f"Expected a path, got {_shorten(item)}. Give a text an id: add({{ID: TEXT}})."
        )


def parse_paths(paths: PathInput) -> list[str]:
    """One path or several, as a list."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    if not isinstance(paths, Iterable):
        raise InputError(f"Expected a path or several, got {_shorten(paths)}.")
    return [_parse_path(item) for item in paths]


def _parse_path(item: Any) -> str:
    if isinstance(item, (str, os.PathLike)):
        return os.fspath(item)
    raise InputError(f"Expected a path, got {_shorten(item)}. Add paths and texts in two calls.")


def _parse_text(item: Any) -> tuple[str, str]:
    pair = tuple(item) if isinstance(item, (tuple, list)) else ()
    if len(pair) != 2 or not isinstance(pair[1], str):
        raise InputError(f"Expected a pair (id, text), got {_shorten(item)}.")
    name, text = pair
    if not isinstance(name, str) or not name:
        raise InputError(f"The id of a text must be a non-empty string, got {name!r}.")
    if problem := id_problem(name):
        raise InputError(
            f"The id of a text must be UTF-8 without control characters and line breaks, got "
            f"{_shorten(name)}, which {problem}."
        )
    return name, text


def _shorten(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:60]} …"
