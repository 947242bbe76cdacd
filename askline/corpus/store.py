"""
The embedded store: documents and their sentences in SQLite, the single source of truth.

Sentences are packed in blocks of some thousand characters, a row each, because a row per sentence
takes several times as long to write. Documents of earlier versions have a row per sentence.

Every change is a transaction that raises the generation by one. A document has the generation that
added it, and removals are recorded with theirs, so that a search index that knows its own
generation can catch up. Writing needs the folder's writer lock (`lock.writer_lock`). Reading needs
no lock and goes on during writes, because the file is in WAL mode.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..errors import CorpusError
from ..text.readers.sentence_blocks import SentenceBlocks, unpack_block
from .document_store import (
    RECORD_COLUMNS,
    SELECT_SENTENCES,
    SENTENCES_PER_QUERY,
    DocumentRows,
    DocumentStore,
    full_checksum,
)
from .schema import (
    CHECKED_COLUMNS,
    DOCUMENT_COLUMNS,
    DocumentRecord,
    RowRecord,
    SentenceRecord,
    block_checksum,
    document_checksum,
    is_current,
    migrate,
    row_checksum,
)
from .storage_errors import store_errors

__all__ = ["REBUILD_SUFFIX", "Store"]

REBUILD_SUFFIX = "-rebuild"

_ROWS_PER_STATEMENT = 50
_MAX_VALUES = 999  # of a statement in old versions of SQLite
_NAMES_PER_QUERY = 500
_NEW_DOCUMENT_COLUMNS = (
    *("id", *DOCUMENT_COLUMNS, "sentences", "table_rows", "checksum", "generation"),
)
_LOG_PAGES = 4_000  # of 4 KB
_QUICK_CHECK_BYTES = 8 * 2**20  # about 15 ms; a sample of a larger store takes 3 ms
_BLOCK_BITS = 32
"""The id of a block is that of its document, shifted by as much, plus its first sentence."""
_LAST_IN_DOCUMENT = 2**_BLOCK_BITS - 1
_LAST_DOCUMENT = 2**31 - 1  # a higher id can only be damage
_BLOCK_COLUMNS = ("id", "data", "checksum")
_BLOCKS_OF_DOCUMENT = (
    f"id BETWEEN ?1 << {_BLOCK_BITS} AND (?1 << {_BLOCK_BITS}) + {_LAST_IN_DOCUMENT}"
)
_DOCUMENT_TABLES = {
    "documents": ("id", "id = ?1"),
    **dict.fromkeys(("headings", "sentences", "records"), ("document", "document = ?1")),
    "sentence_blocks": (f"id >> {_BLOCK_BITS}", _BLOCKS_OF_DOCUMENT),
}
"""The tables with rows of documents: the id of the document of a row, and how to find them."""
_SELECT_BLOCKS = """
SELECT id, data, checksum FROM sentence_blocks WHERE id BETWEEN
    coalesce((SELECT max(id) FROM sentence_blocks WHERE id BETWEEN ?1 AND ?1 + ?2), ?1)
    AND ?1 + ?3
ORDER BY id
"""
_TEXT_COLUMNS = ("h.text", "s.text", "h.path", "h.lead_in")
# Damaged texts can be blobs, or bytes that are not UTF-8.
_SELECT_TEXTS = SELECT_SENTENCES.format(
    columns=", ".join(f"CAST(coalesce({name}, '') AS TEXT)" for name in _TEXT_COLUMNS)
)
_SELECT_BYTES = SELECT_SENTENCES.format(
    columns=", ".join(f"CAST(coalesce({name}, '') AS BLOB)" for name in _TEXT_COLUMNS)
)


class Store(DocumentStore):
    """One SQLite connection. Several threads may use it; a lock gives them turns."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self.path = path
        self.name = str(path or "The store in memory")
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

    def is_new(self) -> bool:
        """Whether nothing was ever stored; the writer lock keeps other processes away."""
        return self._last_id() == 0

    def roots(self) -> list[tuple[str, int]]:
        """Folders that were added, in order, and how many of their own names ids begin with."""
        return self._all("SELECT path, own_names FROM roots ORDER BY rowid")

    def sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """
        The sentences `first` to `last` of a document, both included.

        DamagedDocumentError if a block with one of them differs from its checksum.
        """
        blocks = self._blocks(document_id, first, last)
        if not blocks:
            return super().sentences(document_id, first, last)
        found: list[SentenceRecord] = []
        for block_first, data, checksum in blocks:
            self._compare(document_id, checksum, block_checksum, document_id, block_first, data)
            try:
                found += unpack_block(data, block_first, first, last)
            except ValueError as error:
                raise self._damaged(document_id) from error
        return found

    def unchecked_sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """
        Like `sentences`, but faster, and damaged sentences are returned too.

        For searching: a damaged document does not stop questions that others answer.
        """
        found: list[SentenceRecord] = []
        for block_first, data, _ in (blocks := self._blocks(document_id, first, last)):
            with suppress(ValueError):
                found += unpack_block(data, block_first, first, last)
        if blocks:
            return found
        try:
            rows = self._all(_SELECT_TEXTS, document_id, first, last)
        except CorpusError as error:
            if not _is_decoding_error(error):
                raise
            rows = [
                (*row[:5], *(text.decode("utf-8", "replace") for text in row[5:]))
                for row in self._all(_SELECT_BYTES, document_id, first, last)
            ]
        return [SentenceRecord(*row) for row in rows]

    def _blocks(self, document_id: int, first: int, last: int) -> list[tuple[int, Any, Any]]:
        """First sentence, data and checksum of each block with sentences `first` to `last`."""
        if document_id > _LAST_DOCUMENT:
            return []
        start = document_id << _BLOCK_BITS
        bounds = max(first, 0), min(last, _LAST_IN_DOCUMENT)
        rows = self._all(_SELECT_BLOCKS, start, *bounds)
        return [(block_id - start, data, checksum) for block_id, data, checksum in rows]

    def changes(self, since: int) -> tuple[list[int], list[int]]:
        """Ids of documents removed and ids of documents added after a generation."""
        removed = self._all("SELECT document FROM removals WHERE generation > ?", since)
        added = self._all(
            "SELECT id FROM documents WHERE generation > ? AND problem IS NULL ORDER BY id", since
        )
        return [row[0] for row in removed], [row[0] for row in added]

    # Writing

    def add_root(self, path: str, own_names: int) -> None:
        """Record a folder, and how many of its own names the ids of its files begin with."""
        with self._transaction():
            self._execute("INSERT OR IGNORE INTO roots VALUES (?, ?)", path, own_names)

    def forget_removals(self, until: int) -> None:
        """Delete the records of removals up to a generation that every search index has reached."""
        if until == self.removals_from:
            return
        with self._transaction():
            self._execute("DELETE FROM removals WHERE generation <= ?", until)
            self._execute("UPDATE settings SET value = ? WHERE name = 'removals_from'", until)

    # Verification

    def quick_problem(self) -> str | None:
        """
        What a check with a bounded cost finds; None if nothing is wrong.

        SQLite checks all pages of a small store. Of a large one, documents are sampled.
        """
        try:
            if self._page_bytes() <= _QUICK_CHECK_BYTES:
                (result,) = self._one("PRAGMA quick_check(1)")
                return None if result == "ok" else str(result)
            self._sample_documents()
        except CorpusError as error:
            return str(error)
        return None

    def has_sound_structure(self) -> bool:
        """Whether SQLite finds all of its pages and indexes consistent; reads the whole file."""
        try:
            result = self._one("PRAGMA integrity_check(1)")[0]
            return bool(result == "ok" and self._settings())
        except CorpusError:
            return False

    def document_ids(self) -> list[int]:
        """The ids of all documents, in order; in a damaged table, those that can be read."""
        try:
            return super().document_ids()
        except CorpusError:
            return [number for number in range(1, self._last_id() + 1) if self._is_stored(number)]

    def add_checksums(self, document_id: int) -> None:
        """Add checksums to a document of an earlier version, as it is stored now."""
        with self._transaction():
            for each in self.iter_sentences(document_id):
                self._execute(
                    "UPDATE sentences SET checksum = ? WHERE document = ? AND ordinal = ?",
                    *(full_checksum(document_id, each), document_id, each.ordinal),
                )
            rows = self._all("SELECT first, row, id FROM records WHERE document = ?", document_id)
            for row in rows:
                self._execute(
                    "UPDATE records SET checksum = ? WHERE document = ? AND first = ?",
                    *(row_checksum(document_id, RowRecord(*row)), document_id, row[0]),
                )
            self._execute(
                "UPDATE documents SET table_rows = ? WHERE id = ?", len(rows), document_id
            )
            columns = self._one(
                f"SELECT {', '.join(CHECKED_COLUMNS)} FROM documents WHERE id = ?", document_id
            )
            self._execute(
                "UPDATE documents SET checksum = ? WHERE id = ?",
                *(document_checksum(document_id, columns), document_id),
            )

    def finish_adding_checksums(self) -> None:
        """Record that all documents have checksums now, so that a missing one is damage."""
        with self._transaction():
            self._execute("UPDATE settings SET value = 0 WHERE name = 'unchecked_until'")
        self.__dict__.pop("_unchecked_until", None)

    def rebuild(self, document_ids: Sequence[int]) -> None:
        """
        Write the file anew with these documents only, because its pages are damaged.

        The new content replaces the old one in one transaction. Search indexes must be rebuilt.
        """
        assert self.path is not None  # memory is not checked
        copy = self.path.with_name(f"{self.path.name}{REBUILD_SUFFIX}")
        copy.unlink(missing_ok=True)
        target = _connect(str(copy))
        try:
            migrate(target)
            with self._lock, store_errors(self.path):
                self._copy_to(target, document_ids)
                target.backup(self._connection)
        finally:
            target.close()
            copy.unlink(missing_ok=True)

    def _copy_to(self, target: sqlite3.Connection, document_ids: Sequence[int]) -> None:
        target.execute("BEGIN")
        with suppress(CorpusError):  # without them, it is a store of a new identity
            settings = self._settings()
            settings["generation"] = settings["removals_from"] = self.generation + 1
            for name, value in settings.items():
                target.execute("UPDATE settings SET value = ? WHERE name = ?", (value, name))
        with suppress(CorpusError):
            target.executemany("INSERT INTO roots VALUES (?, ?)", self.roots())
        with suppress(CorpusError):
            target.executemany("INSERT INTO skipped VALUES (?, ?, ?, ?, ?)", self.skipped())
        for document_id in document_ids:
            try:
                found = {
                    table: self._all(f"SELECT {key}, * FROM {table} WHERE {where}", document_id)
                    for table, (key, where) in _DOCUMENT_TABLES.items()
                }
            except CorpusError:
                continue  # a page that its check did not need; its file is read again by `add`
            for table, table_rows in found.items():
                rows = [row for own_id, *row in table_rows if own_id == document_id]
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    target.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)
        # Ids are never used again, because other indexes refer to them.
        with suppress(CorpusError):
            target.execute(
                "UPDATE sqlite_sequence SET seq = ? WHERE name = 'documents'",
                (max(self._last_id(), *document_ids, 0),),
            )
        target.execute("COMMIT")

    def _is_stored(self, document_id: int) -> bool:
        try:
            return self._one("SELECT 1 FROM documents WHERE id = ?", document_id) is not None
        except CorpusError:
            return True  # and damaged

    def _page_bytes(self) -> int:
        pages, size = self._one("PRAGMA page_count")[0], self._one("PRAGMA page_size")[0]
        return int(pages * size)

    # Statements

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, store_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _change(self) -> Iterator[int]:
        """A transaction that is a new generation."""
        with self._transaction():
            self._execute("UPDATE settings SET value = value + 1 WHERE name = 'generation'")
            yield self.generation

    def _all(self, query: str, *values: Any) -> list[Any]:
        with self._lock, store_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        with self._lock, store_errors(self.path):
            return self._connection.execute(query, values).fetchone()

    def _execute(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values)

    def _insert_rows(
        self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        # Several rows per statement take a third less time than one.
        values = iter(rows)
        count = min(_ROWS_PER_STATEMENT, _MAX_VALUES // len(columns))
        part = list(islice(values, count))
        if len(part) == count:

            def full_parts() -> Iterator[tuple[Any, ...]]:
                nonlocal part
                while len(part) == count:
                    yield tuple(chain.from_iterable(part))
                    part = list(islice(values, count))

            statement = _insert_into(table, tuple(columns), count)
            self._connection.executemany(statement, full_parts())
        if part:
            self._connection.executemany(_insert_into(table, tuple(columns)), part)

    def _insert_all(
        self, documents: Iterable[DocumentRecord], generation: int
    ) -> list[tuple[int, int]]:
        """
        Insert documents table by table, because small documents take most of their time per call.

        The ids continue those of all documents before: no other process writes meanwhile.
        """
        found = list(documents)
        names = {document.name: at for at, document in enumerate(found)}
        if len(names) < len(found):  # one replaces another
            again = next(at for at, each in enumerate(found) if names[each.name] != at) + 1
            return [
                *self._insert_all(found[:again], generation),
                *self._insert_all(found[again:], generation),
            ]
        last = max(self._last_id(), self._one("SELECT max(id) FROM documents")[0] or 0)
        for at in range(0, len(found) if last else 0, _NAMES_PER_QUERY):
            part = [document.name for document in found[at : at + _NAMES_PER_QUERY]]
            marks = ", ".join("?" * len(part))
            rows = self._all(f"SELECT id FROM documents WHERE name IN ({marks})", *part)
            self._delete([row[0] for row in rows], generation)
        if last + len(found) > _LAST_DOCUMENT:
            raise CorpusError(f"{self.name}: No ids of documents are left. Use another folder.")
        blocks = [SentenceBlocks.of(document.sentences) for document in found]
        all_rows = [
            DocumentRows(number, document, len(own))
            for number, (document, own) in enumerate(zip(found, blocks, strict=True), last + 1)
        ]
        self._insert_rows(
            "documents",
            _NEW_DOCUMENT_COLUMNS,
            [
                (own.document_id, *own.values, *own.totals, own.checksum, generation)
                for own in all_rows
            ],
        )
        self._insert_rows(
            "sentence_blocks",
            _BLOCK_COLUMNS,
            (
                (
                    (rows.document_id << _BLOCK_BITS) + first,
                    data,
                    block_checksum(rows.document_id, first, data),
                )
                for rows, own in zip(all_rows, blocks, strict=True)
                for first, data in zip(own.firsts, own.blocks, strict=True)
            ),
        )
        records = chain.from_iterable(own.records for own in all_rows)
        self._insert_rows("records", RECORD_COLUMNS, records)
        return [(own.document_id, own.count) for own in all_rows]

    def _delete(self, document_ids: Sequence[int], generation: int) -> None:
        for document_id in document_ids:
            self._execute("INSERT OR REPLACE INTO removals VALUES (?, ?)", document_id, generation)
            self._execute("DELETE FROM documents WHERE id = ?", document_id)
            if document_id <= _LAST_DOCUMENT:
                statement = f"DELETE FROM sentence_blocks WHERE {_BLOCKS_OF_DOCUMENT}"
                self._execute(statement, document_id)

    def _are_sentences_intact(self, document_id: int, count: int) -> bool:
        """Whether there are as many sentences; CorpusError if one differs from its checksum."""
        if not self._blocks(document_id, 0, 0):
            return super()._are_sentences_intact(document_id, count)
        found = 0
        for first in range(0, count, SENTENCES_PER_QUERY):
            for sentence in self.sentences(document_id, first, first + SENTENCES_PER_QUERY - 1):
                if sentence.ordinal != found:
                    return False
                found += 1
        behind = self._blocks(document_id, count, _LAST_IN_DOCUMENT)
        return found == count and all(first < count for first, _, _ in behind)

    def _may_lack_checksums(self, document_id: int) -> bool:
        return document_id <= self._unchecked_until

    @cached_property
    def _unchecked_until(self) -> int:
        """Documents up to this id may have no checksums. Their number can only fall."""
        try:
            return int(self._setting("unchecked_until"))
        except CorpusError:
            return 0  # the table is damaged, and verification says so

    @contextmanager
    def _document_errors(self, document_id: int) -> Iterator[None]:
        """Name the document if what is stored of it is not text any more."""
        try:
            yield
        except CorpusError as error:
            if not _is_decoding_error(error):
                raise
            raise self._damaged(document_id) from error

    def _readable_name(self, document_id: int) -> str:
        """The name of a document, which may itself be damaged."""
        try:
            row = self._one("SELECT CAST(name AS BLOB) FROM documents WHERE id = ?", document_id)
        except CorpusError:
            row = None
        return bytes(row[0]).decode("utf-8", "replace") if row else f"number {document_id}"

    def _last_id(self) -> int:
        found = self._one("SELECT seq FROM sqlite_sequence WHERE name = 'documents'")
        return int(found[0]) if found else 0

    def _settings(self) -> dict[str, str | int]:
        """All settings; CorpusError if one is missing or has another type."""
        settings: dict[str, str | int] = {"identity": self.identity}
        for name in ("generation", "removals_from", "unchecked_until"):
            settings[name] = self._setting(name)
        if not all(isinstance(value, (str, int)) for value in settings.values()):
            raise CorpusError(f"{self.path}: The settings are damaged.")
        return settings

    def _setting(self, name: str) -> Any:
        found = self._one("SELECT value FROM settings WHERE name = ?", name)
        if found is None:
            raise CorpusError(
                f"{self.path}: The setting {name} is missing. It is damaged. Run `askline index "
                "--verify --out DIR`."
            )
        return found[0]


@lru_cache
def _insert_into(table: str, columns: tuple[str, ...], rows: int = 1) -> str:
    marks = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([marks] * rows)}"


def _is_decoding_error(error: CorpusError) -> bool:
    """Whether SQLite found a text that is not UTF-8."""
    return str(error.__cause__).startswith("Could not decode")


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
        # By default the log is copied into the store, and both are flushed, at nearly every commit.
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        # SQLite opens the file at the first query, so that errors are raised here.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
