"""
The store: documents and their sentences in SQLite, the single source of truth.

Every change is a transaction that raises the generation by one. A document has the generation that
added it, and removals are recorded with theirs, so that a search index that knows its own
generation can catch up. Writing needs the folder's writer lock (`lock.writer_lock`). Reading needs
no lock and goes on during writes, because the file is in WAL mode.
"""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ..errors import CorpusError, NotReadReason
from .checksums import context_checksum, document_checksum, row_checksum, sentence_checksum
from .schema import (
    CHECKED_COLUMNS,
    DOCUMENT_COLUMNS,
    DocumentHeader,
    DocumentRecord,
    FileState,
    RowRecord,
    SentenceRecord,
    SkippedRecord,
    is_current,
    migrate,
)
from .storage_errors import DamagedDocumentError, store_errors

__all__ = ["REBUILD_SUFFIX", "DocumentState", "Store"]

REBUILD_SUFFIX = "-rebuild"
DocumentState = Literal["intact", "unchecked", "damaged"]
"""`unchecked`: stored by an earlier version, without checksums."""

_QUICK_CHECK_BYTES = 8 * 2**20  # about 15 ms; a sample of a larger store takes 3 ms
_SAMPLED_DOCUMENTS = 50
_SAMPLED_SENTENCES = 10
_DOCUMENT_TABLES = {
    "documents": "id",
    "headings": "document",
    "sentences": "document",
    "records": "document",
}
_SENTENCES_PER_QUERY = 10_000
_STATE_COLUMNS = "size, modified, sha256, reading, problem, problem_line, left_out, problem_reason"
_SELECT_HEADER = f"SELECT {', '.join(CHECKED_COLUMNS)}, checksum FROM documents WHERE id = ?"
_SELECT_SENTENCES = """
SELECT ordinal, first, last, place, kind, {columns}
FROM sentences s LEFT JOIN headings h ON h.document = s.document AND h.number = s.heading
WHERE s.document = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal
"""
_TEXT_COLUMNS = ("h.text", "s.text", "h.path", "h.lead_in")
_SELECT_UNCHECKED = _SELECT_SENTENCES.format(
    columns=", ".join(f"CAST(coalesce({name}, '') AS TEXT)" for name in _TEXT_COLUMNS)
)
_SELECT_CHECKED = _SELECT_SENTENCES.format(
    columns="coalesce(h.text, ''), s.text, coalesce(h.path, ''), coalesce(h.lead_in, ''), "
    "s.checksum"
)
_SELECT_BYTES = _SELECT_SENTENCES.format(
    columns=", ".join(f"CAST(coalesce({name}, '') AS BLOB)" for name in _TEXT_COLUMNS)
)


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
        row = self._one(f"SELECT {_STATE_COLUMNS} FROM documents WHERE name = ?", name)
        return FileState(*row) if row else None

    def names(self) -> list[str]:
        """Names of all documents, sorted, unreadable files included."""
        return [row[0] for row in self._all("SELECT name FROM documents ORDER BY name")]

    def file_at(self, path: str) -> tuple[str, FileState] | None:
        """The name and the state of the document that was read from an absolute path."""
        row = self._one(f"SELECT name, {_STATE_COLUMNS} FROM documents WHERE path = ?", path)
        return (row[0], FileState(*row[1:])) if row else None

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

    def unreadable(self) -> list[tuple[str, int, str, NotReadReason]]:
        """Name, line, problem and reason of each file that could not be read."""
        return self._all(
            "SELECT name, problem_line, problem, coalesce(problem_reason, 'damaged') "
            "FROM documents WHERE problem IS NOT NULL ORDER BY name"
        )

    def skipped(self) -> list[SkippedRecord]:
        """What was left out when paths were added, by path, reason and kind."""
        rows = self._all("SELECT * FROM skipped ORDER BY root, reason, kind")
        return [SkippedRecord(*row) for row in rows]

    def document(self, document_id: int) -> DocumentHeader | None:
        """The header of a document; None if it has been removed. Its checksum is checked."""
        with self._document_errors(document_id):
            row = self._one(_SELECT_HEADER, document_id)
        if row is None:
            return None
        *header, checksum = row
        self._compare(document_id, checksum, document_checksum, document_id, header)
        columns = dict(zip(CHECKED_COLUMNS, header, strict=True))
        return DocumentHeader(*(columns[field] for field in DocumentHeader._fields))

    def document_id(self, name: str) -> int | None:
        """The id of the document of that name."""
        row = self._one("SELECT id FROM documents WHERE name = ?", name)
        return int(row[0]) if row else None

    def sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """
        The sentences `first` to `last` of a document, both included.

        DamagedDocumentError if one of them differs from its checksum.
        """
        with self._document_errors(document_id):
            rows = self._all(_SELECT_CHECKED, document_id, first, last)
        sentences = []
        for *columns, checksum in rows:
            sentence = SentenceRecord(*columns)
            self._compare(document_id, checksum, _full_checksum, document_id, sentence)
            sentences.append(sentence)
        return sentences

    def unchecked_sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """
        Like `sentences`, but faster, and damaged sentences are returned too.

        For searching: a damaged document does not stop questions that others answer.
        """
        try:
            rows = self._all(_SELECT_UNCHECKED, document_id, first, last)
        except CorpusError as error:
            if not _is_decoding_error(error):
                raise
            rows = [
                (*row[:5], *(text.decode("utf-8", "replace") for text in row[5:]))
                for row in self._all(_SELECT_BYTES, document_id, first, last)
            ]
        return [SentenceRecord(*row) for row in rows]

    def iter_sentences(self, document_id: int) -> Iterator[SentenceRecord]:
        """Every sentence of a document in order, unchecked, read in parts to save memory."""
        first, step = 0, _SENTENCES_PER_QUERY
        while part := self.unchecked_sentences(document_id, first, first + step - 1):
            yield from part
            first += step

    def row_at(self, document_id: int, offset: int) -> RowRecord | None:
        """The csv or jsonl row that contains a character of the original; None in other files."""
        with self._document_errors(document_id):
            found = self._one(
                "SELECT first, row, id, checksum FROM records WHERE document = ? AND first <= ? "
                "ORDER BY first DESC LIMIT 1",
                document_id,
                offset,
            )
        return self._checked_row(document_id, *found) if found else None

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

    def replace_skipped(self, records: Sequence[SkippedRecord]) -> None:
        """Record what was left out, instead of all that was recorded before."""
        if self.skipped() == sorted(records):
            return
        with self._transaction() as connection:
            connection.execute("DELETE FROM skipped")
            connection.executemany("INSERT INTO skipped VALUES (?, ?, ?, ?, ?)", records)

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
            last = self._one("SELECT max(id) FROM documents")[0] or 0
            for _ in range(_SAMPLED_DOCUMENTS):
                found = self._one(
                    "SELECT id, sentences FROM documents WHERE id >= ? LIMIT 1",
                    random.randint(1, max(1, last)),
                )
                if found is not None and self.document(found[0]) is not None:
                    first = random.randint(0, max(0, found[1] - 1))
                    self.sentences(found[0], first, first + _SAMPLED_SENTENCES)
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
            return [row[0] for row in self._all("SELECT id FROM documents ORDER BY id")]
        except CorpusError:
            return [number for number in range(1, self._last_id() + 1) if self._is_stored(number)]

    def check_document(self, document_id: int) -> DocumentState:
        """Read a whole document, and compare it with its checksums."""
        try:
            if self.document(document_id) is None:
                return "damaged"  # its id is in an index only
            sentences, table_rows, checksum = self._one(
                "SELECT sentences, table_rows, checksum FROM documents WHERE id = ?", document_id
            )
            for first in range(0, sentences, _SENTENCES_PER_QUERY):
                self.sentences(document_id, first, first + _SENTENCES_PER_QUERY - 1)
            # Searching a damaged tree can lead to rows of other documents.
            keys = self._all(
                "SELECT document, ordinal FROM sentences WHERE document = ?", document_id
            )
            rows = self._all(
                "SELECT first, row, id, checksum FROM records WHERE document = ?", document_id
            )
            for row in rows:
                self._checked_row(document_id, *row)
        except CorpusError:
            return "damaged"
        if keys != [(document_id, ordinal) for ordinal in range(sentences)]:
            return "damaged"
        if table_rows not in (None, len(rows)):
            return "damaged"
        return "intact" if checksum is not None else "unchecked"

    def origin(self, document_id: int) -> tuple[str, str | None, bool]:
        """The name and the path of a document that may be damaged, and whether they are intact."""
        name, path, is_intact = self._readable_name(document_id), None, False
        with suppress(CorpusError):
            found = self._one("SELECT path FROM documents WHERE id = ?", document_id)
            path = found[0] if found else None
            is_intact = self.document(document_id) is not None
        return name, path, is_intact

    def add_checksums(self, document_id: int) -> None:
        """Add checksums to a document of an earlier version, as it is stored now."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE sentences SET checksum = ? WHERE document = ? AND ordinal = ?",
                [
                    (
                        _full_checksum(document_id, each),
                        document_id,
                        each.ordinal,
                    )
                    for each in self.iter_sentences(document_id)
                ],
            )
            rows = self._all("SELECT first, row, id FROM records WHERE document = ?", document_id)
            connection.executemany(
                "UPDATE records SET checksum = ? WHERE document = ? AND first = ?",
                [(row_checksum(document_id, RowRecord(*row)), document_id, row[0]) for row in rows],
            )
            connection.execute(
                "UPDATE documents SET table_rows = ? WHERE id = ?", (len(rows), document_id)
            )
            *columns, _ = self._one(_SELECT_HEADER, document_id)
            connection.execute(
                "UPDATE documents SET checksum = ? WHERE id = ?",
                (document_checksum(document_id, columns), document_id),
            )

    def forget_states(self, paths: Iterable[str]) -> None:
        """Make the next `Corpus.add` read the files at these paths, also if they are unchanged."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE documents SET size = NULL, modified = NULL, sha256 = '', checksum = NULL "
                "WHERE path = ?",
                ((path,) for path in paths),
            )

    def finish_adding_checksums(self) -> None:
        """Record that all documents have checksums now, so that a missing one is damage."""
        with self._transaction() as connection:
            connection.execute("UPDATE settings SET value = 0 WHERE name = 'unchecked_until'")
        self.__dict__.pop("_unchecked_until", None)

    def discard(self, document_ids: Sequence[int]) -> None:
        """Remove documents by id, because their names may be damaged."""
        with self._change() as (connection, generation):
            for document_id in document_ids:
                connection.execute(
                    "INSERT OR REPLACE INTO removals VALUES (?, ?)", (document_id, generation)
                )
                connection.execute("DELETE FROM documents WHERE id = ?", (document_id,))

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
                    table: self._all(f"SELECT {key}, * FROM {table} WHERE {key} = ?", document_id)
                    for table, key in _DOCUMENT_TABLES.items()
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
            found = connection.execute("SELECT id FROM documents WHERE name = ?", (name,))
            for (document_id,) in found.fetchall():
                connection.execute("INSERT INTO removals VALUES (?, ?)", (document_id, generation))
                connection.execute("DELETE FROM documents WHERE id = ?", (document_id,))

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
        assert document_id is not None  # a row was inserted
        last_context = ("", "", "")  # heading, path, lead-in
        contexts: dict[tuple[str, str, str], tuple[int | None, int]] = {
            last_context: (None, context_checksum(document_id, ""))
        }

        def sentence_rows() -> Iterator[tuple[Any, ...]]:
            nonlocal last_context
            context_id, own_checksum = contexts[last_context]
            for sentence in document.sentences:
                ordinal, start, end, number, kind, heading, text, path, lead_in = sentence
                context = heading, path, lead_in
                if context != last_context:
                    if context not in contexts:
                        own_checksum = context_checksum(document_id, *context)
                        contexts[context] = len(contexts) - 1, own_checksum
                    last_context = context
                    context_id, own_checksum = contexts[context]
                checksum = sentence_checksum(sentence, own_checksum)
                yield document_id, ordinal, start, end, number, kind, context_id, text, checksum

        insert = "INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        count = connection.executemany(insert, sentence_rows()).rowcount
        connection.executemany(
            "INSERT INTO headings (document, number, text, path, lead_in) VALUES (?, ?, ?, ?, ?)",
            (
                (document_id, number, *context)
                for context, (number, _) in contexts.items()
                if number is not None
            ),
        )
        table_rows = connection.executemany(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?)",
            ((document_id, *row, row_checksum(document_id, row)) for row in document.rows),
        ).rowcount
        # SQLite counts -1 if there was nothing to insert.
        count, table_rows = max(count, 0), max(table_rows, 0)
        fields = dict(zip(DOCUMENT_COLUMNS, values, strict=True))
        fields |= {"sentences": count, "table_rows": table_rows}
        checksum = document_checksum(document_id, (fields[name] for name in CHECKED_COLUMNS))
        connection.execute(
            "UPDATE documents SET sentences = ?, table_rows = ?, checksum = ? WHERE id = ?",
            (count, table_rows, checksum, document_id),
        )
        return count

    def _checked_row(
        self, document_id: int, start: int, row: int, own_id: str, checksum: int | None
    ) -> RowRecord:
        record = RowRecord(start, row, own_id)
        self._compare(document_id, checksum, row_checksum, document_id, record)
        return record

    def _compare(
        self,
        document_id: int,
        stored: int | None,
        checksum: Callable[..., int],
        *arguments: Any,
    ) -> None:
        """Compare a stored checksum with that of the arguments; DamagedDocumentError if unequal."""
        if stored is None and document_id <= self._unchecked_until:
            return
        try:
            if checksum(*arguments) == stored:
                return
        except (AttributeError, TypeError):  # even the types of the columns are damaged
            pass
        raise self._damaged(document_id)

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

    def _damaged(self, document_id: int) -> DamagedDocumentError:
        return DamagedDocumentError.of(self._readable_name(document_id))

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

    def _one(self, query: str, *values: Any) -> Any:
        with self._lock, store_errors(self.path):
            return self._connection.execute(query, values).fetchone()

    def _all(self, query: str, *values: Any) -> list[Any]:
        with self._lock, store_errors(self.path):
            return self._connection.execute(query, values).fetchall()


def _full_checksum(document_id: int, sentence: SentenceRecord) -> int:
    context = sentence.heading, sentence.path, sentence.lead_in
    return sentence_checksum(sentence, context_checksum(document_id, *context))


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
        # SQLite opens the file at the first query, so that errors are raised here.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
