"""
From a file or a text to the record that the store keeps.

`read_if_changed` reads a file only if it may differ from what is stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError, MissingExtraError, Problem
from ..text.readers import (
    CELL_SEPARATOR,
    ParsedDocument,
    SentenceSpan,
    iter_sentences,
    read_document,
)
from ..text.readers.files import read_plain_text
from .results import FileReport
from .schema import SENTENCE_KINDS, DocumentRecord, FileState, RowRecord, SentenceRecord

__all__ = [
    "READER_VERSION",
    "STANDARD_INPUT",
    "NewDocument",
    "UnchangedFile",
    "failed_report",
    "read_if_changed",
    "text_record",
]

READER_VERSION = "3"
"""Raise this when files are read or split differently: every file is then read again."""

STANDARD_INPUT = "-"
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


def read_if_changed(
    path: Path, name: str, stored: FileState | None
) -> NewDocument | UnchangedFile | FileReport:
    """
    Read a file unless its size and date, or its content, are as stored.

    Returns a report alone if there is nothing to write, or if the file cannot be read now. Problems
    name the path, which a user can open, and not the id.
    """
    try:
        if name == STANDARD_INPUT:
            return _read_standard_input(stored)
        before = path.stat()
        if stored is not None and stored.reader_version == READER_VERSION:
            if (stored.size, stored.modified) == (before.st_size, before.st_mtime_ns):
                return _stored_report(path, name, stored)
            if stored.sha256 and stored.sha256 == _sha256(path):
                report = _stored_report(path, name, stored)
                return UnchangedFile(name, before.st_size, _reliable_date(before), report)
        return _read_file(path, name, before)
    except MissingExtraError as error:
        return failed_report(path, name, str(error))
    except OSError as error:
        return failed_report(path, name, f"It cannot be read: {error.strerror or error}.")


def text_record(name: str, text: str) -> DocumentRecord:
    """The record of a text that is not a file, under the given id."""
    content = read_plain_text(text)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    document = ParsedDocument(
        name, "text", name, text, digest, "utf-8", content.blocks, content.unit, content.starts
    )
    return _to_record(document, name, is_file=False)


def failed_report(path: str | os.PathLike[str], name: str, message: str) -> FileReport:
    """The report of a file that could not be read."""
    return FileReport(name, "failed", (Problem(os.fspath(path), 0, message),))


def _read_standard_input(stored: FileState | None) -> NewDocument | FileReport:
    try:
        document = read_document(STANDARD_INPUT)
    except DataError as error:
        return FileReport(STANDARD_INPUT, "failed", error.problems)
    current = (document.sha256, READER_VERSION)
    if stored is not None and (stored.sha256, stored.reader_version) == current:
        return FileReport(STANDARD_INPUT, "unchanged", document.problems)
    return NewDocument(_to_record(document, STANDARD_INPUT, is_file=False), document.problems)


def _read_file(path: Path, name: str, before: os.stat_result) -> NewDocument | FileReport:
    size, modified = before.st_size, _reliable_date(before)
    path.open("rb").close()  # a missing permission is an OSError, not a problem of the content
    try:
        document = read_document(path)
    except DataError as error:
        after = path.stat()
        if (after.st_size, after.st_mtime_ns) != (size, before.st_mtime_ns):
            return FileReport(name, "failed", error.problems)  # it is being written
        first = error.problems[0]
        record = DocumentRecord(
            name,
            sha256="",
            reader_version=READER_VERSION,
            size=size,
            modified=modified,
            problem=first.message,
            problem_line=first.line,
        )
        return NewDocument(record, (first,))
    return NewDocument(_to_record(document, name, size=size, modified=modified), document.problems)


def _to_record(
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
        _replace_surrogates(document.title),
        document.unit,
        len(document.text),
        skipped_rows=_skipped_rows(document.problems),
        sentences=_sentence_records(document),
        rows=_row_records(document),
    )


def _sentence_records(document: ParsedDocument) -> Iterator[SentenceRecord]:
    kinds = {kind: number for number, kind in enumerate(SENTENCE_KINDS)}
    for ordinal, span in enumerate(iter_sentences(document)):
        start, end = document.span(span.start, span.end) or (span.start, span.end)
        yield SentenceRecord(
            ordinal,
            start,
            end,
            document.place(span.start).number,
            kinds[span.kind],
            _replace_surrogates(span.heading),
            _replace_surrogates(_sentence_text(document, span)),
        )


def _sentence_text(document: ParsedDocument, span: SentenceSpan) -> str:
    """The text of a sentence; the cells of a table row are joined into one line."""
    text = document.text[span.start : span.end]
    return text.replace("\n", CELL_SEPARATOR) if span.kind in ("row", "columns") else text


def _row_records(document: ParsedDocument) -> Iterator[RowRecord]:
    for part in document.parts:
        start, _ = document.span(part.start, part.end) or (part.start, part.end)
        yield RowRecord(start, part.row, _replace_surrogates(part.id))


def _skipped_rows(problems: Iterable[Problem]) -> str | None:
    rows = [(problem.line, problem.message) for problem in problems]
    return json.dumps(rows) if rows else None


def _stored_report(path: Path, name: str, stored: FileState) -> FileReport:
    """The report of a file that has not changed since it was stored."""
    if stored.problem is None:
        skipped = json.loads(stored.skipped_rows or "[]")
        return FileReport(name, "unchanged", tuple(Problem(str(path), *row) for row in skipped))
    return FileReport(name, "failed", (Problem(str(path), stored.problem_line, stored.problem),))


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can carry and UTF-8 cannot; the length stays the same."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


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
