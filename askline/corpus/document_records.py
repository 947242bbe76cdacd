"""
From a file or a text to the record that the store keeps.

`start_reading` reads a file only if it may differ from what is stored. A file is read in a child
process while others are stored; `StartedFile.finish` waits for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError, MissingExtraError, Problem
from ..text.readers import (
    ParsedDocument,
    PreparedFile,
    ReaderPool,
    ReadLimitError,
    ReadLimits,
    file_kind,
    prepare_file,
    read_content,
    read_plain_text,
    split_document,
)
from .results import FileReport
from .schema import DocumentRecord, FileState

__all__ = [
    "READER_VERSION",
    "STANDARD_INPUT",
    "NewDocument",
    "StartedFile",
    "UnchangedFile",
    "failed_report",
    "read_standard_input",
    "start_reading",
    "text_record",
]

READER_VERSION = "20"
"""Raise this when files are read or split differently: every file is then read again."""

STANDARD_INPUT = "-"
_TABLE_KINDS = ("csv", "jsonl", "xlsx", "opendocument")  # formats in which columns have names
_MIN_AGE_NANOSECONDS = 2 * 10**9  # some file systems store dates to two seconds
_HASH_BLOCK_BYTES = 2**20


class NewDocument(NamedTuple):
    """A document to be stored, and the problems for its report."""

    record: DocumentRecord
    problems: tuple[Problem, ...]


class UnchangedFile(NamedTuple):
    """A file with a new date whose content is already stored."""

    name: str
    size: int
    modified: int | None
    report: FileReport


@dataclass(frozen=True, slots=True)
class StartedFile:
    """A file that is being read, and its state when reading started."""

    path: Path
    name: str
    state: os.stat_result
    content: Future[PreparedFile]
    version: str
    limits: ReadLimits
    source: str | None = None
    """The absolute path that is stored."""

    def finish(self) -> NewDocument | FileReport:
        """Wait until the file is read. A report alone means that it cannot be read now."""
        try:
            return self._to_document()
        except MissingExtraError as error:
            return failed_report(self.path, self.name, str(error))
        except OSError as error:
            return _os_error_report(self.path, self.name, error)

    def _to_document(self) -> NewDocument | FileReport:
        size, modified = self.state.st_size, _reliable_date(self.state)
        try:
            content = self.content.result()
        except DataError as error:
            os.close(os.open(self.path, os.O_RDONLY))  # without permission, it is not its content
            after = self.path.stat()
            if (after.st_size, after.st_mtime_ns) != (size, self.state.st_mtime_ns):
                return FileReport(self.name, "failed", error.problems)  # it is being written
            first = error.problems[0]
            is_limit = isinstance(error, ReadLimitError)
            record = DocumentRecord(
                self.name,
                sha256="",
                reader_version=(
                    _limited_version(self.version, self.limits) if is_limit else self.version
                ),
                size=size,
                modified=modified,
                problem=first.message,
                problem_line=first.line,
                problem_reason=first.reason,
                path=self.source,
            )
            return NewDocument(record, (first,))
        record = _to_record(
            content,
            self.name,
            version=self.version,
            size=size,
            modified=modified,
            source=self.source,
        )
        return NewDocument(record, content.problems)


def start_reading(
    path: Path,
    name: str,
    stored: FileState | None,
    pool: ReaderPool,
    *,
    source: str | None = None,
) -> StartedFile | UnchangedFile | FileReport:
    """
    Start to read a file unless its size and date, or its content, are as stored.

    Returns a report alone if there is nothing to write, or if the file cannot be read now. Problems
    name the path, which a user can open, and not the id. `source` is the absolute path to store.
    """
    try:
        state = path.stat()
        version = _version(path, pool.columns)
        if stored is not None and stored.reader_version in (
            version,
            _limited_version(version, pool.limits),
        ):
            if (stored.size, stored.modified) == (state.st_size, state.st_mtime_ns):
                return _stored_report(path, name, stored)
            if stored.sha256 and stored.sha256 == _sha256(path):
                report = _stored_report(path, name, stored)
                return UnchangedFile(name, state.st_size, _reliable_date(state), report)
        content = pool.submit_prepared(path, state)
        return StartedFile(path, name, state, content, version, pool.limits, source)
    except OSError as error:
        return _os_error_report(path, name, error)


def read_standard_input(stored: FileState | None) -> NewDocument | FileReport:
    """Read standard input, which is plain text, in this process."""
    try:
        content = prepare_file(*read_content(STANDARD_INPUT))
    except DataError as error:
        return FileReport(STANDARD_INPUT, "failed", error.problems)
    current = (content.sha256, READER_VERSION)
    if stored is not None and (stored.sha256, stored.reader_version) == current:
        return FileReport(STANDARD_INPUT, "unchanged", content.problems)
    return NewDocument(_to_record(content, STANDARD_INPUT, is_file=False), content.problems)


def text_record(name: str, text: str) -> DocumentRecord:
    """The record of a text that is not a file, under the given id."""
    content = read_plain_text(text)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    document = ParsedDocument(
        name, "text", name, text, digest, "utf-8", content.blocks, content.unit, content.starts
    )
    prepared = prepare_file(document, split_document(document))
    return _to_record(prepared, name, is_file=False)


def failed_report(path: str | os.PathLike[str], name: str, message: str) -> FileReport:
    """The report of a file that could not be read."""
    problem = Problem(os.fspath(path), 0, message, "unreachable")
    return FileReport(name, "failed", (problem,))


def _os_error_report(path: Path, name: str, error: OSError) -> FileReport:
    return failed_report(path, name, f"It cannot be read: {error.strerror or error}.")


def _version(path: Path, columns: Sequence[str]) -> str:
    """The reader version; with other columns, tables are read again."""
    if columns and file_kind(path) in _TABLE_KINDS:
        return f"{READER_VERSION} with {list(columns)}"
    return READER_VERSION


def _limited_version(version: str, limits: ReadLimits) -> str:
    """The reader version of files that exceed these limits: with others, they are read again."""
    return f"{version} within {limits.seconds:g} s and {limits.megabytes} MB"


def _to_record(
    content: PreparedFile,
    name: str,
    *,
    version: str | None = None,
    is_file: bool = True,
    size: int | None = None,
    modified: int | None = None,
    source: str | None = None,
) -> DocumentRecord:
    return DocumentRecord(
        name,
        content.sha256,
        version or READER_VERSION,
        is_file,
        size,
        modified,
        content.kind,
        content.encoding,
        content.title,
        content.unit,
        content.characters,
        skipped_rows=_skipped_rows(content.problems),
        path=source,
        sentences=content.sentences,
        rows=content.rows,
        passages=content.passages,
    )


def _skipped_rows(problems: Iterable[Problem]) -> str | None:
    rows = [(problem.line, problem.message) for problem in problems]
    return json.dumps(rows) if rows else None


def _stored_report(path: Path, name: str, stored: FileState) -> FileReport:
    """The report of a file that has not changed since it was stored."""
    if stored.problem is None:
        skipped = json.loads(stored.skipped_rows or "[]")
        problems = tuple(Problem(str(path), *row) for row in skipped)
        return FileReport(name, "unchanged", problems, size=stored.size or 0)
    problem = Problem(
        str(path), stored.problem_line, stored.problem, stored.problem_reason or "damaged"
    )
    return FileReport(name, "failed", (problem,))


def _reliable_date(state: os.stat_result) -> int | None:
    """The date of a file; None for one so new that a change may leave the date the same."""
    is_new = time.time_ns() - state.st_mtime_ns < _MIN_AGE_NANOSECONDS
    return None if is_new else state.st_mtime_ns


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
