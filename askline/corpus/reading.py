"""One file to one row of the store, unless the store has it already."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError, MissingExtraError, Problem
from ..text.reading import CELLS_APART, Document, Sentence, read_document, sentences
from ..text.reading.plain import read_plain
from .answers import FileReport
from .rows import SENTENCE_KINDS, DocumentRow, Known, RecordRow, SentenceRow

__all__ = ["READING", "STANDARD_INPUT", "Fresh", "Unchanged", "examine", "failed", "text_row"]

READING = "3"
"""Raised when files are read or split in another way: then every file is read again."""

STANDARD_INPUT = "-"
_YOUNG_NANOSECONDS = 2 * 10**9  # some file systems keep dates to two seconds
_HASHED = 2**20  # bytes at a time


class Fresh(NamedTuple):
    """What the store has to take: a row, and the problems that go into its report."""

    row: DocumentRow
    problems: tuple[Problem, ...]


class Unchanged(NamedTuple):
    """A file with a new date whose content the store has already."""

    name: str
    size: int
    modified: int | None
    report: FileReport


def examine(path: Path, name: str, known: Known | None) -> Fresh | Unchanged | FileReport:
    """What has to be done about a file; a report where that is nothing, or cannot be done now."""
    try:
        if name == STANDARD_INPUT:
            return _standard_input(known)
        before = path.stat()
        if known is not None and known.reading == READING:
            if (known.size, known.modified) == (before.st_size, before.st_mtime_ns):
                return _as_before(name, known)
            if known.sha256 and known.sha256 == _sha256(path):
                return Unchanged(name, before.st_size, _date(before), _as_before(name, known))
        return _read(path, name, before)
    except MissingExtraError as error:
        return failed(name, str(error))
    except OSError as error:
        return failed(name, f"It cannot be read: {error.strerror or error}.")


def text_row(name: str, text: str) -> DocumentRow:
    """A text that is no file, under the id given."""
    content = read_plain(text)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    document = Document(
        name, "text", name, text, digest, "utf-8", content.blocks, content.unit, content.starts
    )
    return _row(document, name, is_file=False)


def _standard_input(known: Known | None) -> Fresh | FileReport:
    try:
        document = read_document(STANDARD_INPUT)
    except DataError as error:
        return FileReport(STANDARD_INPUT, "failed", error.problems)
    if known is not None and (known.sha256, known.reading) == (document.sha256, READING):
        return FileReport(STANDARD_INPUT, "unchanged", document.problems)
    return Fresh(_row(document, STANDARD_INPUT, is_file=False), document.problems)


def _read(path: Path, name: str, before: os.stat_result) -> Fresh | FileReport:
    size, modified = before.st_size, _date(before)
    path.open("rb").close()  # what may not be opened is no verdict on what is in it
    try:
        document = read_document(path)
    except DataError as error:
        after = path.stat()
        if (after.st_size, after.st_mtime_ns) != (size, before.st_mtime_ns):
            return FileReport(name, "failed", error.problems)  # it is being written
        first = error.problems[0]
        row = DocumentRow(
            name,
            sha256="",
            reading=READING,
            size=size,
            modified=modified,
            problem=first.message,
            problem_line=first.line,
        )
        return Fresh(row, (first,))
    return Fresh(_row(document, name, size=size, modified=modified), document.problems)


def _row(
    document: Document,
    name: str,
    *,
    is_file: bool = True,
    size: int | None = None,
    modified: int | None = None,
) -> DocumentRow:
    return DocumentRow(
        name,
        document.sha256,
        READING,
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


def _sentence_rows(document: Document) -> Iterator[SentenceRow]:
    kinds = {kind: number for number, kind in enumerate(SENTENCE_KINDS)}
    for ordinal, found in enumerate(sentences(document)):
        first, last = document.span(found.start, found.end) or (found.start, found.end)
        yield SentenceRow(
            ordinal,
            first,
            last,
            document.place(found.start).number,
            kinds[found.kind],
            _storable(found.heading),
            _storable(_text(document, found)),
        )


def _text(document: Document, found: Sentence) -> str:
    """As the document has it; the cells of a row, which are lines there, in one line."""
    text = document.text[found.start : found.end]
    return text.replace("\n", CELLS_APART) if found.kind in ("row", "columns") else text


def _record_rows(document: Document) -> Iterator[RecordRow]:
    for part in document.parts:
        first, _ = document.span(part.start, part.end) or (part.start, part.end)
        yield RecordRow(first, part.row, _storable(part.id))


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


def _as_before(name: str, known: Known) -> FileReport:
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
