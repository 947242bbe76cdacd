"""
The store: documents and their sentences in SQLite, the one source of truth.

Every change is a transaction that raises the generation by one; a document row carries the
generation that brought it, and removals are written down with theirs, so that a search index that
knows its own generation can follow. Writing wants the folder's writer lock (`lock.writing`);
reading wants nothing and goes on meanwhile, for the file is in WAL mode.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import CorpusError
from .schema import (
    DOCUMENT_FIELDS,
    DocumentHeader,
    DocumentRecord,
    FileState,
    RowRecord,
    SentenceRecord,
    is_current,
    migrate,
)
from .storage_errors import store_errors

__all__ = ["Store"]

_PORTION = 10_000  # sentences of a document in memory at a time
_SENTENCES = """
SELECT ordinal, first, last, place, kind, coalesce(h.text, ''), s.text
FROM sentences s LEFT JOIN headings h ON h.document = s.document AND h.number = s.heading
WHERE s.document = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal
"""


class Store:
    """One connection, used by several threads in turn."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._turn = threading.RLock()

    @classmethod
    def in_memory(cls) -> Store:
        """A store that goes with its process."""
        connection = _connect(":memory:")
        migrate(connection)
        return cls(None, connection)

    @classmethod
    def open(cls, path: Path, *, may_migrate: bool) -> Store | None:
        """
        The store in a file; None where it has to be made or brought to the newest version first.

        `may_migrate` does that, and wants the writer lock.
        """
        with store_errors(path):
            connection = _connect_file(path)
            try:
                if is_current(connection):
                    return cls(path, connection)
                if may_migrate:
                    connection.execute("PRAGMA journal_mode = WAL")
                    migrate(connection)
                    return cls(path, connection)
            except CorpusError as error:
                connection.close()
                raise CorpusError(f"{path}: {error}") from error
            except BaseException:
                connection.close()
                raise
            connection.close()
            return None

    def close(self) -> None:
        """Let go of the file. Nothing is lost by not calling this."""
        with self._turn:
            self._connection.close()

    # Reading

    @property
    def identity(self) -> str:
        """Eight random bytes that the store got when it was made."""
        return str(self._setting("identity"))

    @property
    def generation(self) -> int:
        """How many changes there have been."""
        return int(self._setting("generation"))

    @property
    def removals_from(self) -> int:
        """The generation from which on removals are remembered."""
        return int(self._setting("removals_from"))

    def known(self, name: str) -> FileState | None:
        """What is remembered of the file of that name."""
        row = self._one(
            "SELECT size, modified, sha256, reading, problem, problem_line, left_out "
            "FROM documents WHERE name = ?",
            name,
        )
        return FileState(*row) if row else None

    def names(self, *, prefix: str = "") -> list[str]:
        """Names of documents that begin so, in order; unreadable files are among them."""
        # As a range, which the index on names serves.
        query = "SELECT name FROM documents WHERE name >= ? AND name < ? ORDER BY name"
        return [row[0] for row in self._all(query, prefix, prefix + "\U0010ffff")]

    def listing(self, *, after: str, limit: int) -> list[tuple[Any, ...]]:
        """Name, title, kind, unit, sentences, characters and problem, by name, from `after` on."""
        return self._all(
            "SELECT name, title, kind, unit, sentences, characters, problem FROM documents "
            "WHERE name > ? ORDER BY name LIMIT ?",
            after,
            limit,
        )

    def counts(self) -> tuple[int, int, int]:
        """Documents that could be read, their sentences, their characters."""
        row = self._one(
            "SELECT count(*), total(sentences), total(characters) FROM documents "
            "WHERE problem IS NULL"
        )
        return int(row[0]), int(row[1]), int(row[2])

    def unreadable(self) -> list[tuple[str, int, str]]:
        """Name, line and problem of each file that could not be read."""
        return self._all(
            "SELECT name, problem_line, problem FROM documents WHERE problem IS NOT NULL "
            "ORDER BY name"
        )

    def document(self, number: int) -> DocumentHeader | None:
        """What a document is called, by its id; None once it is removed."""
        row = self._one("SELECT name, title, unit, kind FROM documents WHERE id = ?", number)
        return DocumentHeader(*row) if row else None

    def number(self, name: str) -> int | None:
        """The id of a document by its name."""
        row = self._one("SELECT id FROM documents WHERE name = ?", name)
        return int(row[0]) if row else None

    def sentences(self, document: int, first: int, last: int) -> list[SentenceRecord]:
        """The sentences from `first` to `last`, both included."""
        return [SentenceRecord(*row) for row in self._all(_SENTENCES, document, first, last)]

    def record(self, document: int, offset: int) -> RowRecord | None:
        """The row of csv or jsonl that holds a character of the original; None in other files."""
        row = self._one(
            "SELECT first, row, id FROM records WHERE document = ? AND first <= ? "
            "ORDER BY first DESC LIMIT 1",
            document,
            offset,
        )
        return RowRecord(*row) if row else None

    def all_sentences(self, document: int) -> Iterator[SentenceRecord]:
        """Every sentence of a document in order, few of them in memory at a time."""
        first = 0
        while portion := self.sentences(document, first, first + _PORTION - 1):
            yield from portion
            first += _PORTION

    def changes(self, since: int) -> tuple[list[int], list[int]]:
        """Ids of documents that went and that came after a generation, oldest first."""
        gone = self._all("SELECT document FROM removals WHERE generation > ?", since)
        came = self._all(
            "SELECT id FROM documents WHERE generation > ? AND problem IS NULL ORDER BY id", since
        )
        return [row[0] for row in gone], [row[0] for row in came]

    # Writing

    def put(self, documents: Iterable[DocumentRecord]) -> list[int]:
        """Store documents in place of those with their names, all or none; sentences of each."""
        with self._change() as (connection, generation):
            return [self._insert(document, connection, generation) for document in documents]

    def remove(self, names: Sequence[str]) -> None:
        """Take documents out; all or none."""
        with self._change() as (connection, generation):
            self._drop(names, connection, generation)

    def touch(self, files: Iterable[tuple[str, int, int | None]]) -> None:
        """Remember for each name a new size and date; what is in the file has not changed."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE documents SET size = ?2, modified = ?3 WHERE name = ?1", files
            )

    def forget_removals(self, until: int) -> None:
        """Drop what no search index will ask for again."""
        if until == self.removals_from:
            return
        with self._transaction() as connection:
            connection.execute("DELETE FROM removals WHERE generation <= ?", (until,))
            connection.execute(
                "UPDATE settings SET value = ? WHERE name = 'removals_from'", (until,)
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._turn, store_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _change(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        with self._transaction() as connection:
            connection.execute("UPDATE settings SET value = value + 1 WHERE name = 'generation'")
            yield connection, self.generation

    @staticmethod
    def _drop(names: Iterable[str], connection: sqlite3.Connection, generation: int) -> None:
        for name in names:
            connection.execute(
                "INSERT INTO removals SELECT id, ? FROM documents WHERE name = ?",
                (generation, name),
            )
            connection.execute("DELETE FROM documents WHERE name = ?", (name,))

    @classmethod
    def _insert(cls, row: DocumentRecord, connection: sqlite3.Connection, generation: int) -> int:
        cls._drop([row.name], connection, generation)
        values = [getattr(row, name) for name in DOCUMENT_FIELDS]
        number = connection.execute(
            f"INSERT INTO documents ({', '.join(DOCUMENT_FIELDS)}, sentences, generation) "
            f"VALUES ({', '.join('?' * len(values))}, 0, ?)",
            [*values, generation],
        ).lastrowid
        headings: dict[str, int] = {}

        def numbered() -> Iterator[tuple[Any, ...]]:
            for *place, heading, text in row.rows:
                under = headings.setdefault(heading, len(headings)) if heading else None
                yield number, *place, under, text

        insert = "INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        count = connection.executemany(insert, numbered()).rowcount
        connection.executemany(
            "INSERT INTO headings VALUES (?, ?, ?)",
            ((number, place, text) for text, place in headings.items()),
        )
        connection.executemany(
            "INSERT INTO records VALUES (?, ?, ?, ?)", ((number, *record) for record in row.records)
        )
        count = max(count, 0)  # SQLite counts -1 where there was nothing to insert
        connection.execute("UPDATE documents SET sentences = ? WHERE id = ?", (count, number))
        return count

    def _setting(self, name: str) -> Any:
        return self._one("SELECT value FROM settings WHERE name = ?", name)[0]

    def _one(self, query: str, *values: Any) -> Any:
        with self._turn, store_errors(self.path):
            return self._connection.execute(query, values).fetchone()

    def _all(self, query: str, *values: Any) -> list[Any]:
        with self._turn, store_errors(self.path):
            return self._connection.execute(query, values).fetchall()


def _connect_file(path: Path) -> sqlite3.Connection:
    """A connection that may write where that is allowed, and reads where it is not."""
    try:
        return _connect(str(path))
    except sqlite3.OperationalError:
        if not path.exists():
            raise
        # A folder that may not be written: without a log beside it the file cannot be changing.
        return _connect(f"{path.absolute().as_uri()}?immutable=1")


def _connect(place: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        place,
        uri=place.startswith("file:"),
        timeout=30.0,
        isolation_level=None,  # transactions begin and end where we say so
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # what was reported outlives a power cut
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # or it is opened later
    except BaseException:
        connection.close()
        raise
    return connection
