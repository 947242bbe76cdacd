"""
The SQLite schema of the store: its records, its tables, the migrations between versions, checksums.

The version of a store is the number of migrations it has been through. They run in order, each in
its own transaction, so a store is never between two versions.

There is a checksum per document, per block of sentences and per row of a table. CRC-32 finds every
change within 32 neighboring bits of a text, and misses few others. A block is checked without the
rest of its document, so that a question checks only what it reads. The shared store, and documents
of earlier versions, have a checksum per sentence. The id of the document is part of each checksum,
so that a record of another document is noticed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from ..errors import CorpusError, NotReadReason
from ..text.readers.kinds import SENTENCE_KINDS
from ..text.readers.sentence_blocks import RowRecord, SentenceColumns, SentenceRecord

if TYPE_CHECKING:
    from ..text.readers.prepared import PassageColumns

__all__ = [
    "CHECKED_COLUMNS",
    "DOCUMENT_COLUMNS",
    "MIGRATIONS",
    "SENTENCE_KINDS",
    "DocumentHeader",
    "DocumentRecord",
    "FileState",
    "RowRecord",
    "SentenceRecord",
    "SkippedRecord",
    "block_checksum",
    "context_checksum",
    "document_checksum",
    "is_current",
    "migrate",
    "row_checksum",
    "sentence_checksum",
    "sentence_checksums",
]

_SAME_NAME = "name is_file size modified sha256 kind encoding title unit characters problem"
DOCUMENT_COLUMNS: dict[str, str] = {
    **{name: name for name in _SAME_NAME.split()},
    "problem_line": "problem_line",
    "reading": "reader_version",
    "path": "path",
    "left_out": "skipped_rows",
    "problem_reason": "problem_reason",
}
"""Columns of the table `documents`, and the field of `DocumentRecord` that fills each."""
CHECKED_COLUMNS = (
    *(name for name in DOCUMENT_COLUMNS if name not in ("size", "modified", "problem_reason")),
    "sentences",
    "table_rows",
)
"""
Columns in the checksum of a document: all that do not change while it is stored, except the reason
of its problem, which earlier versions did not have.
"""


class SkippedRecord(NamedTuple):
    """Files that were left out when a path was added, in the order of the table `skipped`."""

    root: str
    """The absolute path that was added."""
    reason: NotReadReason
    kind: str
    files: int
    example: str
    """The path of one of them."""


class DocumentHeader(NamedTuple):
    """The name of a document, and the unit in which its places are counted."""

    name: str
    title: str
    unit: str
    kind: str


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document to be stored, or a file that could not be read and the reason."""

    name: str
    sha256: str
    reader_version: str
    """When the version of the readers changes, the file is read again."""
    is_file: bool = True
    size: int | None = None
    modified: int | None = None
    """Nanoseconds; None for a file so new that it may change without a change of its date."""
    kind: str = "text"
    encoding: str | None = None
    title: str = ""
    unit: str = "line"
    characters: int = 0
    problem: str | None = None
    problem_line: int = 0
    problem_reason: NotReadReason | None = None
    skipped_rows: str | None = None
    """Rows of the file that could not be read, as JSON: [[line, reason], ...]."""
    path: str | None = None
    """The absolute path of a file, to read it again; None for a text."""
    sentences: Iterable[SentenceRecord] = field(default=(), repr=False)
    """Iterated once, while the sentences are written; `SentenceBlocks` are written fastest."""
    rows: Iterable[RowRecord] = field(default=(), repr=False)
    """Iterated once; in order."""
    passages: PassageColumns | None = field(default=None, repr=False)
    """For the search index; None if they are to be made from the sentences."""


class FileState(NamedTuple):
    """The state of a file when it was last read, to decide whether it must be read again."""

    size: int | None
    modified: int | None
    sha256: str
    reader_version: str
    problem: str | None
    problem_line: int
    skipped_rows: str | None
    problem_reason: NotReadReason | None
    """None if there is no problem, or if an earlier version stored it."""


_APPLICATION_ID = 0x41534B4C  # "ASKL", in the header of the SQLite file

# An id of a document is never reused (AUTOINCREMENT), because the search index refers to it.
# A file that could not be read has a row with a problem and no sentences, so that it is read again
# only when it changes.
_CREATE_TABLES = """
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

# Rows of csv and jsonl files. A sentence belongs to the last row that starts at or before it.
_ADD_RECORDS = """
CREATE TABLE records (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    first INTEGER NOT NULL,
    row INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (document, first)
) WITHOUT ROWID;
"""

# Rows of csv and jsonl that could not be read, as JSON: [[line, reason], ...]; NULL if none.
_ADD_LEFT_OUT = "ALTER TABLE documents ADD COLUMN left_out TEXT;"

# Before, the name of a file was its absolute path. The names stay as they are.
_ADD_PATHS = """
ALTER TABLE documents ADD COLUMN path TEXT;
UPDATE documents SET path = name WHERE is_file;
CREATE INDEX documents_by_path ON documents (path) WHERE path IS NOT NULL;
CREATE TABLE roots (path TEXT NOT NULL UNIQUE, own_names INTEGER NOT NULL);
"""

# NULL in documents that were stored before, up to the id `unchecked_until`.
_ADD_CHECKSUMS = """
ALTER TABLE documents ADD COLUMN table_rows INTEGER;
ALTER TABLE documents ADD COLUMN checksum INTEGER;
ALTER TABLE sentences ADD COLUMN checksum INTEGER;
ALTER TABLE records ADD COLUMN checksum INTEGER;
INSERT INTO settings SELECT 'unchecked_until', coalesce(max(id), 0) FROM documents;
"""

# The path of headings above a sentence, one per line, and the lead-in of its list. A row of the
# table is one context that sentences share.
_ADD_CONTEXTS = """
ALTER TABLE headings ADD COLUMN path TEXT NOT NULL DEFAULT '';
ALTER TABLE headings ADD COLUMN lead_in TEXT NOT NULL DEFAULT '';
"""

# Why a file could not be read, and what was left out when a path was added, by kind and reason.
_ADD_NOT_READ = """
ALTER TABLE documents ADD COLUMN problem_reason TEXT;
CREATE TABLE skipped (
    root TEXT NOT NULL,
    reason TEXT NOT NULL,
    kind TEXT NOT NULL,
    files INTEGER NOT NULL,
    example TEXT NOT NULL,
    PRIMARY KEY (root, reason, kind)
) WITHOUT ROWID;
"""

# Sentences in packed blocks (`SentenceBlocks`) instead of a row per sentence and per heading.
# Documents that were stored before keep their rows in `sentences` and `headings`. The id is that of
# the document, shifted by 32 bits, plus the ordinal of the first sentence of the block.
_ADD_BLOCKS = """
CREATE TABLE sentence_blocks (
    id INTEGER PRIMARY KEY,
    data BLOB NOT NULL,
    checksum INTEGER NOT NULL
);
"""

MIGRATIONS: tuple[str, ...] = (
    _CREATE_TABLES,
    _ADD_RECORDS,
    _ADD_LEFT_OUT,
    _ADD_PATHS,
    _ADD_CHECKSUMS,
    _ADD_CONTEXTS,
    _ADD_NOT_READ,
    _ADD_BLOCKS,
)


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Run the migrations that a store has not been through."""
    current = _version(connection)
    for number, script in enumerate(migrations[current:], start=current + 1):
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
    """Whether no migration is due; CorpusError for the file of another program or a newer one."""
    version = _version(connection)
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    if version and application_id != _APPLICATION_ID:
        raise CorpusError("It is an SQLite file of another program. Choose another folder.")
    if version > len(migrations):
        raise CorpusError(
            f"It was written by a newer askline: version {version}, and this one reads up to "
            f"{len(migrations)}. Update askline, or index into another folder."
        )
    return version == len(migrations)


def _version(connection: sqlite3.Connection) -> int:
    """The number of migrations that a store has been through."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


_32_BITS = 0xFFFFFFFF


def document_checksum(document_id: int, columns: Iterable[str | int | None]) -> int:
    """The checksum of the columns of a document that do not change while it is stored."""
    # SQLite stores a truth value as an integer.
    values = [int(value) if isinstance(value, bool) else value for value in columns]
    return crc32("\0".join(map(str, [document_id, *values])).encode())


def block_checksum(document_id: int, first: int, block: bytes) -> int:
    """The checksum of a block of sentences, from its document and its first sentence."""
    return crc32(block, (document_id * 0x9E3779B1 + first * 0x85EBCA77) & _32_BITS)


def context_checksum(document_id: int, heading: str, path: str = "", lead_in: str = "") -> int:
    """
    The part of a sentence's checksum that all sentences with the same context share.

    Without a path and a lead-in, it is what earlier versions stored.
    """
    checksum = crc32(heading.encode(), document_id & _32_BITS)
    return crc32(lead_in.encode(), crc32(path.encode(), checksum))


def sentence_checksum(sentence: SentenceRecord, context: int) -> int:
    """The checksum of a sentence and its place, from that of its document and context."""
    ordinal, start, end, number, kind, _, text, _, _ = sentence
    # The place is mixed by multiplication, because formatting it would slow down indexing. An odd
    # factor keeps every bit of a number.
    place = (8 * ordinal + kind) * 0x9E3779B1 + start * 0x85EBCA77 + end * 0xC2B2AE3D
    return crc32(text.encode(), (place + number * 0x27D4EB2F + context) & _32_BITS)


def sentence_checksums(sentences: SentenceColumns, contexts: Sequence[int]) -> list[int]:
    """The `sentence_checksum` of all sentences of a document, from those of its contexts."""
    return [
        crc32(
            text,
            (
                (8 * ordinal + kind) * 0x9E3779B1
                + start * 0x85EBCA77
                + end * 0xC2B2AE3D
                + number * 0x27D4EB2F
                + contexts[context]
            )
            & _32_BITS,
        )
        for ordinal, start, end, number, kind, context, text in zip(
            range(len(sentences)),
            sentences.starts,
            sentences.ends,
            sentences.numbers,
            sentences.kinds,
            sentences.context_of,
            map(str.encode, sentences.texts),
            strict=True,
        )
    ]


def row_checksum(document_id: int, row: RowRecord) -> int:
    """The checksum of a row of a csv or jsonl file."""
    return crc32(f"{document_id} {row.start} {row.row} {row.id}".encode())
