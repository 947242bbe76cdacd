"""
The store: documents and their sentences in SQLite, the single source of truth.

Every change is a transaction that raises the generation by one. A document has the generation that
added it, and removals are recorded with theirs, so that a search index that knows its own
generation can catch up. Writing needs the folder's writer lock (`lock.writer_lock`). Reading needs
no lock and goes on during writes, because the file is in WAL mode.
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
    DOCUMENT_COLUMNS,
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

_SENTENCES_PER_QUERY = 10_000
_SELECT_SENTENCES = """
SELECT ordinal, first, last, place, kind, coalesce(h.text, ''), s.text
FROM sentences s LEFT JOIN headings h ON h.document = s.document AND h.number = s.heading
WHERE s.document = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal
"""


class Store:
    """One SQLite connection. Several threads may use it; a lock gives them turns."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()

    @classmethod
    def in_memory(cls) -> Store:
        """A store in memory, which ends with its process."""
        connection = _connect(":memory:")
        migrate(connection)
        return cls(None, connection)

    @classmethod
    def open(cls, path: Path, *, may_migrate: bool) -> Store | None:
        """
        The store in a file; None if it must first be created or migrated.

        With `may_migrate` it is created or migrated, which needs the writer lock.
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
        """Close the file. No data is lost if this is not called."""
        with self._lock:
            self._connection.close()

    # Reading

    @property
    def identity(self) -> str:
        """Eight random bytes, in hexadecimal, drawn when the store was created."""
        return str(self._setting("identity"))

    @property
    def generation(self) -> int:
        """The number of changes so far."""
        return int(self._setting("generation"))

    @property
    def removals_from(self) -> int:
        """Removals after this generation are recorded."""
        return int(self._setting("removals_from"))

    def file_state(self, name: str) -> FileState | None:
        """The state in which the file of that name was last read; None if it is not stored."""
        row = self._one(
            "SELECT size, modified, sha256, reading, problem, problem_line, left_out "
            "FROM documents WHERE name = ?",
            name,
        )
        return FileState(*row) if row else None

    def names(self) -> list[str]:
        """Names of all documents, sorted, unreadable files included."""
        return [row[0] for row in self._all("SELECT name FROM documents ORDER BY name")]

    def name_at(self, path: str) -> str | None:
        """The name of the document that was read from an absolute path."""
        row = self._one("SELECT name FROM documents WHERE path = ?", path)
        return str(row[0]) if row else None

    def source_path(self, name: str) -> str | None:
        """The absolute path that a document was read from; None for a text."""
        row = self._one("SELECT path FROM documents WHERE name = ?", name)
        return row[0] if row else None

    def files(self, *, prefix: str) -> list[tuple[str, str]]:
        """Name and path of each file whose path starts with `prefix`, sorted by path."""
        # As a range, so that SQLite uses the index on paths.
        query = "SELECT name, path FROM documents WHERE path >= ? AND path < ? ORDER BY path"
        return self._all(query, prefix, prefix + "\U0010ffff")

    def roots(self) -> list[tuple[str, int]]:
        """Folders that were added, in order, and how many of their own names ids begin with."""
        return self._all("SELECT path, own_names FROM roots ORDER BY rowid")

    def list_documents(self, *, after: str, limit: int) -> list[tuple[Any, ...]]:
        """Name, title, kind, unit, sentences, characters and problem of documents, by name."""
        return self._all(
            "SELECT name, title, kind, unit, sentences, characters, problem FROM documents "
            "WHERE name > ? ORDER BY name LIMIT ?",
            after,
            limit,
        )

    def counts(self) -> tuple[int, int, int]:
        """Counts of readable documents, of their sentences, and of their characters."""
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

    def document(self, document_id: int) -> DocumentHeader | None:
        """The header of a document; None if it has been removed."""
        row = self._one("SELECT name, title, unit, kind FROM documents WHERE id = ?", document_id)
        return DocumentHeader(*row) if row else None

    def document_id(self, name: str) -> int | None:
        """The id of the document of that name."""
        row = self._one("SELECT id FROM documents WHERE name = ?", name)
        return int(row[0]) if row else None

    def sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """The sentences `first` to `last` of a document, both included."""
        rows = self._all(_SELECT_SENTENCES, document_id, first, last)
        return [SentenceRecord(*row) for row in rows]

    def iter_sentences(self, document_id: int) -> Iterator[SentenceRecord]:
        """Every sentence of a document in order, read in parts to save memory."""
        first = 0
        while part := self.sentences(document_id, first, first + _SENTENCES_PER_QUERY - 1):
            yield from part
            first += _SENTENCES_PER_QUERY

    def row_at(self, document_id: int, offset: int) -> RowRecord | None:
        """The csv or jsonl row that contains a character of the original; None in other files."""
        row = self._one(
            "SELECT first, row, id FROM records WHERE document = ? AND first <= ? "
            "ORDER BY first DESC LIMIT 1",
            document_id,
            offset,
        )
        return RowRecord(*row) if row else None

    def changes(self, since: int) -> tuple[list[int], list[int]]:
        """Ids of documents removed and ids of documents added after a generation."""
        removed = self._all("SELECT document FROM removals WHERE generation > ?", since)
        added = self._all(
            "SELECT id FROM documents WHERE generation > ? AND problem IS NULL ORDER BY id", since
        )
        return [row[0] for row in removed], [row[0] for row in added]

    # Writing

    def put(self, documents: Iterable[DocumentRecord]) -> list[int]:
        """
        Store documents, all or none; each replaces a document of the same name.

        Returns the number of sentences of each.
        """
        with self._change() as (connection, generation):
            return [self._insert(document, connection, generation) for document in documents]

    def remove(self, names: Sequence[str]) -> None:
        """Remove documents, all or none."""
        with self._change() as (connection, generation):
            self._delete(names, connection, generation)

    def add_root(self, path: str, own_names: int) -> None:
        """Record a folder, and how many of its own names the ids of its files begin with."""
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO roots VALUES (?, ?)", (path, own_names))

    def touch(self, files: Iterable[tuple[str, int, int | None]]) -> None:
        """Record a new size and date for each name; the content has not changed."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE documents SET size = ?2, modified = ?3 WHERE name = ?1", files
            )

    def forget_removals(self, until: int) -> None:
        """Delete the records of removals up to a generation that every search index has reached."""
        if until == self.removals_from:
            return
        with self._transaction() as connection:
            connection.execute("DELETE FROM removals WHERE generation <= ?", (until,))
            connection.execute(
                "UPDATE settings SET value = ? WHERE name = 'removals_from'", (until,)
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, store_errors(self.path):
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
        """A transaction that is a new generation."""
        with self._transaction() as connection:
            connection.execute("UPDATE settings SET value = value + 1 WHERE name = 'generation'")
            yield connection, self.generation

    @staticmethod
    def _delete(names: Iterable[str], connection: sqlite3.Connection, generation: int) -> None:
        for name in names:
            connection.execute(
                "INSERT INTO removals SELECT id, ? FROM documents WHERE name = ?",
                (generation, name),
            )
            connection.execute("DELETE FROM documents WHERE name = ?", (name,))

    @classmethod
    def _insert(
        cls, document: DocumentRecord, connection: sqlite3.Connection, generation: int
    ) -> int:
        cls._delete([document.name], connection, generation)
        values = [getattr(document, field) for field in DOCUMENT_COLUMNS.values()]
        document_id = connection.execute(
            f"INSERT INTO documents ({', '.join(DOCUMENT_COLUMNS)}, sentences, generation) "
            f"VALUES ({', '.join('?' * len(values))}, 0, ?)",
            [*values, generation],
        ).lastrowid
        headings: dict[str, int] = {}

        def sentence_rows() -> Iterator[tuple[Any, ...]]:
            for *columns, heading, text in document.sentences:
                heading_id = headings.setdefault(heading, len(headings)) if heading else None
                yield document_id, *columns, heading_id, text

        insert = "INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        count = connection.executemany(insert, sentence_rows()).rowcount
        connection.executemany(
            "INSERT INTO headings VALUES (?, ?, ?)",
            ((document_id, heading_id, text) for text, heading_id in headings.items()),
        )
        connection.executemany(
            "INSERT INTO records VALUES (?, ?, ?, ?)",
            ((document_id, *row) for row in document.rows),
        )
        count = max(count, 0)  # SQLite counts -1 if there was nothing to insert
        connection.execute("UPDATE documents SET sentences = ? WHERE id = ?", (count, document_id))
        return count

    def _setting(self, name: str) -> Any:
        return self._one("SELECT value FROM settings WHERE name = ?", name)[0]

    def _one(self, query: str, *values: Any) -> Any:
        with self._lock, store_errors(self.path):
            return self._connection.execute(query, values).fetchone()

    def _all(self, query: str, *values: Any) -> list[Any]:
        with self._lock, store_errors(self.path):
            return self._connection.execute(query, values).fetchall()


def _connect_file(path: Path) -> sqlite3.Connection:
    """A connection for writing if the file permits it, otherwise for reading."""
    try:
        return _connect(str(path))
    except sqlite3.OperationalError:
        if not path.exists():
            raise
        # In a read-only folder there can be no write-ahead log, so the file does not change.
        return _connect(f"{path.absolute().as_uri()}?immutable=1")


def _connect(database: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        database,
        uri=database.startswith("file:"),
        timeout=30.0,
        isolation_level=None,  # transactions are explicit
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # committed data survives a power failure
        # SQLite opens the file at the first query, so that errors are raised here.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
