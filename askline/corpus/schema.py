"""
What goes into the store and comes out of it, row by row.

The tables of the store, and how an older store becomes a newer one.

A store's version is the number of migrations it has been through. They run in order, each in a
transaction of its own, so a store is never between two versions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import CorpusError

__all__ = [
    "DOCUMENT_FIELDS",
    "MIGRATIONS",
    "SENTENCE_KINDS",
    "DocumentHeader",
    "DocumentRecord",
    "FileState",
    "RowRecord",
    "SentenceRecord",
    "is_current",
    "migrate",
]

SENTENCE_KINDS = ("sentence", "heading", "code", "cell", "row", "columns")
"""By their number in the table."""
_ABOVE = {SENTENCE_KINDS.index("heading"), SENTENCE_KINDS.index("columns")}

DOCUMENT_FIELDS = (
    "name is_file size modified sha256 reading kind encoding title unit characters "
    "problem problem_line left_out"
).split()
"""The columns that a `DocumentRecord` fills."""


class SentenceRecord(NamedTuple):
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


class RowRecord(NamedTuple):
    """A row of csv or jsonl: where its text begins, its number, its own id or nothing."""

    first: int
    row: int
    id: str


class DocumentHeader(NamedTuple):
    """What a document is called, and in what its places are counted."""

    name: str
    title: str
    unit: str
    kind: str


@dataclass(frozen=True, slots=True)
class DocumentRecord:
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
    rows: Iterable[SentenceRecord] = field(default=(), repr=False)
    """Gone through once, while they are written."""
    records: Iterable[RowRecord] = field(default=(), repr=False)
    """So are these; in order."""


class FileState(NamedTuple):
    """What the store remembers of a file, to tell whether it must be read again."""

    size: int | None
    modified: int | None
    sha256: str
    reading: str
    problem: str | None
    problem_line: int
    left_out: str | None


_APPLICATION_ID = 0x41534B4C  # "ASKL", in the header of the SQLite file

# A document's id is never given twice (AUTOINCREMENT), for the search index refers to it.
# A file that could not be read has a row with a problem and no sentences: it is not tried again
# until it changes.
_FIRST = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
INSERT INTO settings VALUES ('identity', lower(hex(randomblob(8)))), ('generation', 0),
    ('removals_from', -1);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    is_file INTEGER NOT NULL,
    size INTEGER,
    modified INTEGER,
    sha256 TEXT NOT NULL,
    reading TEXT NOT NULL,
    kind TEXT NOT NULL,
    encoding TEXT,
    title TEXT NOT NULL,
    unit TEXT NOT NULL,
    sentences INTEGER NOT NULL,
    characters INTEGER NOT NULL,
    problem TEXT,
    problem_line INTEGER,
    generation INTEGER NOT NULL
);
CREATE INDEX documents_by_generation ON documents (generation);
CREATE TABLE headings (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (document, number)
) WITHOUT ROWID;
CREATE TABLE sentences (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    place INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    heading INTEGER,
    text TEXT NOT NULL,
    PRIMARY KEY (document, ordinal)
) WITHOUT ROWID;
CREATE TABLE removals (document INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
"""

# Found by the offset at which a sentence begins: the last one that begins before it holds it.
_RECORDS = """
CREATE TABLE records (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    first INTEGER NOT NULL,
    row INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (document, first)
) WITHOUT ROWID;
"""

# Rows of csv and jsonl that could not be read, as JSON: [[line, why], ...]; NULL where all could.
_LEFT_OUT = "ALTER TABLE documents ADD COLUMN left_out TEXT;"

MIGRATIONS: tuple[str, ...] = (_FIRST, _RECORDS, _LEFT_OUT)


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring a store to the newest version; one that is newer still is refused."""
    have = _version(connection)
    for number, script in enumerate(migrations[have:], start=have + 1):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {script}; PRAGMA application_id = {_APPLICATION_ID};"
                f"PRAGMA user_version = {number}; COMMIT;"
            )
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def is_current(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> bool:
    """Whether there is nothing to migrate; raises CorpusError for a store that is not ours."""
    found = _version(connection)
    identity = connection.execute("PRAGMA application_id").fetchone()[0]
    if found and identity != _APPLICATION_ID:
        raise CorpusError("It is an SQLite file of another program. Name another folder.")
    if found > len(migrations):
        raise CorpusError(
            f"It was written by a newer askline: version {found}, and this one reads up to "
            f"{len(migrations)}. Update askline, or index into another folder."
        )
    return found == len(migrations)


def _version(connection: sqlite3.Connection) -> int:
    """How many migrations a store has been through."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
