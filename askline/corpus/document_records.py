"""
From a file or a text to the record that the store keeps, and to its id.

`start_reading` reads a file only if it may differ from what is stored. A file is read in a child
process while others are stored; `StartedFile.finish` waits for it.

The id of a file is the last part of its path, with `/` between names: relative to the folder that
was given, so that ids do not tell where a folder is on the machine. An id stays the same as long
as the file is stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import unicodedata
from collections.abc import Container, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path, PurePath
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
from .document_store import DocumentStore
from .results import FileReport
from .schema import DocumentRecord, FileState

__all__ = [
    "READER_VERSION",
    "STANDARD_INPUT",
    "FileIds",
    "NewDocument",
    "StartedFile",
    "UnchangedFile",
    "absolute_path",
    "failed_report",
    "id_problem",
    "read_standard_input",
    "start_reading",
    "text_record",
]

READER_VERSION = "21"
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
