"""What goes into the store and comes out of it, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = [
    "DOCUMENT_FIELDS",
    "SENTENCE_KINDS",
    "Described",
    "DocumentRow",
    "Known",
    "RecordRow",
    "SentenceRow",
]

SENTENCE_KINDS = ("sentence", "heading", "code", "cell", "row", "columns")
"""By their number in the table."""
_ABOVE = {SENTENCE_KINDS.index("heading"), SENTENCE_KINDS.index("columns")}

DOCUMENT_FIELDS = (
    "name is_file size modified sha256 reading kind encoding title unit characters "
    "problem problem_line left_out"
).split()
"""The columns that a `DocumentRow` fills."""


class SentenceRow(NamedTuple):
    """A sentence: its place in the source, its kind by number, the heading above it, its text."""

    ordinal: int
    first: int
    last: int
    place: int
    kind: int
    heading: str
    text: str

    @property
    def is_heading(self) -> bool:
        """Whether it stands above others rather than among them."""
        return self.kind in _ABOVE


class RecordRow(NamedTuple):
    """A row of csv or jsonl: where its text begins, its number, its own id or nothing."""

    first: int
    row: int
    id: str


class Described(NamedTuple):
    """What a document is called, and in what its places are counted."""

    name: str
    title: str
    unit: str
    kind: str


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document to be stored, or a file that could not be read and why."""

    name: str
    sha256: str
    reading: str
    """The rules it was read by; where they change, it is read again."""
    is_file: bool = True
    size: int | None = None
    modified: int | None = None
    """Nanoseconds; None where the file is so young that it may change without showing it."""
    kind: str = "text"
    encoding: str | None = None
    title: str = ""
    unit: str = "line"
    characters: int = 0
    problem: str | None = None
    problem_line: int = 0
    left_out: str | None = None
    """Rows of it that could not be read, as JSON."""
    rows: Iterable[SentenceRow] = field(default=(), repr=False)
    """Gone through once, while they are written."""
    records: Iterable[RecordRow] = field(default=(), repr=False)
    """So are these; in order."""


class Known(NamedTuple):
    """What the store remembers of a file, to tell whether it must be read again."""

    size: int | None
    modified: int | None
    sha256: str
    reading: str
    problem: str | None
    problem_line: int
    left_out: str | None
