"""
What can be added to a corpus: paths, or texts with ids.

One file to one row of the store, unless the store has it already.

Files and texts into the store, in small transactions, each file reported once it is safe.

What stands unchanged on disk is not read. A file that has gone from a folder is taken out when that
folder is added again, unless the folder, or a folder above the file, could not be looked into.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError, InputError, MissingExtraError, Problem
from ..text.readers import (
    CELL_SEPARATOR,
    ParsedDocument,
    SentenceSpan,
    find_files,
    iter_sentences,
    read_document,
)
from ..text.readers.files import read_plain_text
from .results import AddReport, FileReport, Outcome
from .schema import SENTENCE_KINDS, DocumentRecord, FileState, RowRecord, SentenceRecord
from .store import Store

__all__ = [
    "READER_VERSION",
    "STANDARD_INPUT",
    "Ingestion",
    "NewDocument",
    "OnFile",
    "PathInput",
    "TextInput",
    "UnchangedFile",
    "failed",
    "parse_inputs",
    "parse_paths",
    "read_if_changed",
    "text_record",
]

PathInput = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
TextInput = Mapping[str, str] | Iterable[tuple[str, str]]


def parse_inputs(source: PathInput | TextInput) -> list[str] | Iterator[tuple[str, str]]:
    """Paths as a list; texts one by one, for a stream of them may not fit into memory."""
    if isinstance(source, Mapping):
        return map(_text, source.items())
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if not isinstance(source, Iterable):
        raise InputError(f"Expected paths, or texts with ids, got {_shown(source)}.")
    items = iter(source)
    start = list(next(zip(items), ()))  # the first item, where there is one
    if start and isinstance(start[0], (tuple, list)):
        return map(_text, chain(start, items))
    return [_path(item) for item in chain(start, items)]


def parse_paths(paths: PathInput) -> list[str]:
    """Paths alone."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [_path(item) for item in paths]


def _path(item: Any) -> str:
    if isinstance(item, (str, os.PathLike)):
        return os.fspath(item)
    raise InputError(
        f"Expected a path, got {_shown(item)}. Add paths and texts one after the other."
    )


def _text(item: Any) -> tuple[str, str]:
    pair = tuple(item) if isinstance(item, (tuple, list)) else ()
    if len(pair) != 2 or not isinstance(pair[1], str):
        raise InputError(f"Expected a pair (id, text), got {_shown(item)}.")
    name, text = pair
    if not isinstance(name, str) or not name:
        raise InputError(f"The id of a text must be a text itself, got {name!r}.")
    return name, text


def _shown(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:60]} …"


READER_VERSION = "3"
"""Raised when files are read or split in another way: then every file is read again."""

STANDARD_INPUT = "-"
_YOUNG_NANOSECONDS = 2 * 10**9  # some file systems keep dates to two seconds
_HASHED = 2**20  # bytes at a time


class NewDocument(NamedTuple):
    """What the store has to take: a row, and the problems that go into its report."""

    row: DocumentRecord
    problems: tuple[Problem, ...]


class UnchangedFile(NamedTuple):
    """A file with a new date whose content the store has already."""

    name: str
    size: int
    modified: int | None
    report: FileReport


def read_if_changed(
    path: Path, name: str, known: FileState | None
) -> NewDocument | UnchangedFile | FileReport:
    """What has to be done about a file; a report where that is nothing, or cannot be done now."""
    try:
        if name == STANDARD_INPUT:
            return _standard_input(known)
        before = path.stat()
        if known is not None and known.reading == READER_VERSION:
            if (known.size, known.modified) == (before.st_size, before.st_mtime_ns):
                return _as_before(name, known)
            if known.sha256 and known.sha256 == _sha256(path):
                return UnchangedFile(name, before.st_size, _date(before), _as_before(name, known))
        return _read(path, name, before)
    except MissingExtraError as error:
        return failed(name, str(error))
    except OSError as error:
        return failed(name, f"It cannot be read: {error.strerror or error}.")


def text_record(name: str, text: str) -> DocumentRecord:
    """A text that is no file, under the id given."""
    content = read_plain_text(text)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    document = ParsedDocument(
        name, "text", name, text, digest, "utf-8", content.blocks, content.unit, content.starts
    )
    return _row(document, name, is_file=False)


def _standard_input(known: FileState | None) -> NewDocument | FileReport:
    try:
        document = read_document(STANDARD_INPUT)
    except DataError as error:
        return FileReport(STANDARD_INPUT, "failed", error.problems)
    if known is not None and (known.sha256, known.reading) == (document.sha256, READER_VERSION):
        return FileReport(STANDARD_INPUT, "unchanged", document.problems)
    return NewDocument(_row(document, STANDARD_INPUT, is_file=False), document.problems)


def _read(path: Path, name: str, before: os.stat_result) -> NewDocument | FileReport:
    size, modified = before.st_size, _date(before)
    path.open("rb").close()  # what may not be opened is no verdict on what is in it
    try:
        document = read_document(path)
    except DataError as error:
        after = path.stat()
        if (after.st_size, after.st_mtime_ns) != (size, before.st_mtime_ns):
            return FileReport(name, "failed", error.problems)  # it is being written
        first = error.problems[0]
        row = DocumentRecord(
            name,
            sha256="",
            reading=READER_VERSION,
            size=size,
            modified=modified,
            problem=first.message,
            problem_line=first.line,
        )
        return NewDocument(row, (first,))
    return NewDocument(_row(document, name, size=size, modified=modified), document.problems)


def _row(
    document: ParsedDocument,
    name: str,
    *,
    is_file: bool = True,
    size: int | None = None,
    modified: int | None = None,
) -> DocumentRecord:
    return DocumentRecord(
        name,
        document.sha256,
        READER_VERSION,
        is_file,
        size,
        modified,
        document.kind,
        document.encoding,
        _storable(document.title),
        document.unit,
        len(document.text),
        left_out=_left_out(document.problems),
        rows=_sentence_rows(document),
        records=_record_rows(document),
    )


def _sentence_rows(document: ParsedDocument) -> Iterator[SentenceRecord]:
    kinds = {kind: number for number, kind in enumerate(SENTENCE_KINDS)}
    for ordinal, found in enumerate(iter_sentences(document)):
        first, last = document.span(found.start, found.end) or (found.start, found.end)
        yield SentenceRecord(
            ordinal,
            first,
            last,
            document.place(found.start).number,
            kinds[found.kind],
            _storable(found.heading),
            _storable(_text_reading(document, found)),
        )


def _text_reading(document: ParsedDocument, found: SentenceSpan) -> str:
    """As the document has it; the cells of a row, which are lines there, in one line."""
    text = document.text[found.start : found.end]
    return text.replace("\n", CELL_SEPARATOR) if found.kind in ("row", "columns") else text


def _record_rows(document: ParsedDocument) -> Iterator[RowRecord]:
    for part in document.parts:
        first, _ = document.span(part.start, part.end) or (part.start, part.end)
        yield RowRecord(first, part.row, _storable(part.id))


def _left_out(problems: Iterable[Problem]) -> str | None:
    rows = [(problem.line, problem.message) for problem in problems]
    return json.dumps(rows) if rows else None


def _storable(text: str) -> str:
    """Without half characters, which JSON can write and UTF-8 cannot; as long as before."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _as_before(name: str, known: FileState) -> FileReport:
    if known.problem is None:
        left_out = json.loads(known.left_out or "[]")
        return FileReport(name, "unchanged", tuple(Problem(name, *row) for row in left_out))
    return FileReport(name, "failed", (Problem(name, known.problem_line, known.problem),))


def failed(name: str, message: str) -> FileReport:
    """The report of a file that cannot be had."""
    return FileReport(name, "failed", (Problem(name, 0, message),))


def _date(state: os.stat_result) -> int | None:
    """None for a file so young that it may change again within the tick of its clock."""
    young = time.time_ns() - state.st_mtime_ns < _YOUNG_NANOSECONDS
    return None if young else state.st_mtime_ns


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_HASHED):
            digest.update(piece)
    return digest.hexdigest()


OnFile = Callable[[FileReport], None]

_BATCH_CHARACTERS = 4_000_000
_BATCH_FILES = 500
_BATCH_SECONDS = 2.0


class Ingestion:
    """One call of `Corpus.add`: what waits to be written, and the sums for its report."""

    def __init__(self, store: Store, on_file: OnFile | None) -> None:
        self._store = store
        self._on_file = on_file
        self._rows: list[tuple[DocumentRecord, FileReport]] = []
        self._touched: list[UnchangedFile] = []
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
        for found in find_files(given):
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
        TextInput by their ids.

        With `only` the corpus afterwards holds these and nothing else.
        """
        seen: set[str] = set()
        for name, text in texts:
            if not _is_storable(name):
                raise InputError(f"The id of a text must be UTF-8, got {name!r}.")
            if only:
                seen.add(name)
            row = text_record(name, text)
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
        found = read_if_changed(path, name, known)
        if isinstance(found, FileReport):
            self._done(found)
        elif isinstance(found, UnchangedFile):
            self._touched.append(found)
        else:
            row, problems = found
            outcome: Outcome = "failed" if row.problem else "changed" if known else "added"
            self._put(row, FileReport(name, outcome, problems))
        self._flush_in_time()

    def _put(self, row: DocumentRecord, report: FileReport) -> None:
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
