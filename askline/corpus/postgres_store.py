"""
A corpus in PostgreSQL, which many machines write and read at the same time.

A document is written with its sentences, its passages and their terms in one transaction, so that a
reader finds all of it or nothing. Writers do not wait for each other, except for documents of the
same name. A question is answered from one state of the database (`snapshot`); the right to read is
enough for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import CorpusError, InputError
from ..text.readers.sentence_blocks import SentenceColumns
from .connectors.postgres_connection import PostgresPool, postgres_errors
from .connectors.server_url import ServerUrl
from .document_store import (
    CHECKED_HEADER,
    RECORD_COLUMNS,
    SELECT_TEXTS,
    DocumentRows,
    DocumentStore,
)
from .passages import indexed_passages
from .postgres_postings import PostgresPostings
from .postgres_schema import MIGRATIONS, prepare_schema, schema_version
from .schema import (
    DOCUMENT_COLUMNS,
    DocumentHeader,
    DocumentRecord,
    RowRecord,
    SentenceRecord,
    SkippedRecord,
    context_checksum,
    sentence_checksums,
)
from .search_index import FORMAT
from .storage import Storage, StorageStatus

if TYPE_CHECKING:
    from .postgres_phrases import PostgresPhrases

__all__ = ["PostgresStorage", "PostgresStore"]

_OPTIONS = ("schema", "timeout")
_DEFAULT_SCHEMA = "askline"
_DEFAULT_TIMEOUT_SECONDS = 30.0
_ATTEMPTS = 5  # of a transaction that another writer gets in the way of
_STORE_TABLES = ("documents", "headings", "sentences", "records", "roots", "skipped", "settings")
_SENTENCE_COLUMNS = "document ordinal first last place kind heading text checksum".split()
_HEADING_COLUMNS = "document number text path lead_in".split()
_SEARCH_TABLES = ("segments", "passages", "postings")
_RIGHTS = "To ask, a role needs USAGE on the schema and SELECT on its tables and sequences."

_Result = TypeVar("_Result")


class PostgresStore(DocumentStore):
    """The tables of a corpus in one schema of a database. Several threads may use it."""

    def __init__(self, server: ServerUrl, pool: PostgresPool, timeout: float) -> None:
        self.name = str(server)
        self.postings = PostgresPostings(pool)
        self._server, self._pool, self._timeout = server, pool, timeout

    @classmethod
    def open(cls, server: ServerUrl, *, must_exist: bool = False) -> PostgresStore:
        """The store in a database; its tables are created or migrated if that is due."""
        if "table" in server.options:
            raise InputError(
                f"{server}?table=… is a table to search, not a corpus of askline. Ask it with "
                "--retriever URL or askline.corpus.connect(URL), or leave out the table."
            )
        schema = server.options.get("schema") or _DEFAULT_SCHEMA
        timeout = server.number_option("timeout", _DEFAULT_TIMEOUT_SECONDS, minimum=0.1)
        pool = PostgresPool(server, _OPTIONS, timeout, _quoted(schema))
        store = cls(server, pool, timeout)
        try:
            with store._errors():
                (encoding,) = pool.execute("SHOW server_encoding")[0]
                if encoding != "UTF8":
                    raise CorpusError(f"The encoding of the database must be UTF8, got {encoding}.")
                version = schema_version(pool, schema)
                if version == 0 and must_exist:
                    raise CorpusError(
                        f"No corpus in the schema {schema!r}. Create one: "
                        "askline index PATH... --to URL"
                    )
                if version < len(MIGRATIONS):
                    _migrate(pool, schema, version)
        except CorpusError as error:
            pool.close()
            place = str(server)
            raise (
                error if str(error).startswith(place) else CorpusError(f"{place}: {error}")
            ) from error
        return store

    def close(self) -> None:
        """Close the connections. No data is lost if this is not called."""
        self._pool.close()

    # Reading

    @property
    def identity(self) -> str:
        """Eight random bytes, in hexadecimal, drawn when the store was created."""
        return str(self._setting("identity"))

    @property
    def generation(self) -> int:
        """The number of changes so far; those that failed are counted too."""
        last, is_called = self._one("SELECT last_value, is_called FROM generations")
        return int(last) if is_called else 0

    @property
    def index_format(self) -> int:
        """The format in which the passages are indexed."""
        return int(self._setting("format"))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside it, this thread sees one state of the database, and nothing is read twice."""
        with self._errors(), self._pool.reading():
            yield

    def documents(self, document_ids: Iterable[int]) -> dict[int, DocumentHeader]:
        """The headers of documents by id, without those that have been removed; checked."""
        wanted = list(dict.fromkeys(document_ids))
        rows = self._all(f"SELECT id, {CHECKED_HEADER} FROM documents WHERE id = ANY(?)", wanted)
        found = {row[0]: self._checked_header(*row) for row in rows}
        for document_id, header in found.items():
            self._remember(("id", header.name), document_id)
        return found

    def document_id(self, name: str) -> int | None:
        """The id of the document of that name."""
        return self._remembered(("id", name), lambda: super(PostgresStore, self).document_id(name))

    def unchecked_sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """Like `sentences`, but faster, and damaged sentences are returned too."""
        return self._remembered(
            ("sentences", document_id, first, last),
            lambda: super(PostgresStore, self).unchecked_sentences(document_id, first, last),
        )

    def passage_sentences(
        self, places: Sequence[tuple[int, int, int]]
    ) -> list[list[SentenceRecord]]:
        """The unchecked sentences of several passages, in one query."""
        rows = self._all(
            f"SELECT wanted.at, ordinal, s.first, s.last, place, kind, {SELECT_TEXTS} "
            "FROM unnest(?::bigint[], ?::int[], ?::int[]) WITH ORDINALITY "
            "AS wanted (document, first, last, at) JOIN sentences s "
            "ON s.document = wanted.document AND ordinal BETWEEN wanted.first AND wanted.last "
            "LEFT JOIN headings h ON h.document = s.document AND h.number = s.heading "
            "ORDER BY wanted.at, ordinal",
            *([place[at] for place in places] for at in range(3)),
        )
        found: list[list[SentenceRecord]] = [[] for _ in places]
        for at, *columns in rows:
            found[at - 1].append(SentenceRecord(*columns))
        for place, sentences in zip(places, found, strict=True):
            self._remember(("sentences", *place), sentences)
        return found

    def roots(self) -> list[tuple[str, int]]:
        """Folders that were added, in order, and how many of their own names ids begin with."""
        return self._all("SELECT path, own_names FROM roots ORDER BY number")

    # Writing

    def put(self, documents: Iterable[DocumentRecord]) -> list[int]:
        """
        Store documents, all or none; each replaces a document of the same name.

        Returns the number of sentences of each. CorpusError if another machine has meanwhile given
        the name of a file to another file.
        """
        # Read once, because the transaction may be repeated. The order prevents deadlocks.
        records = [_storable(document) for document in documents]
        order = sorted(range(len(records)), key=lambda at: records[at].name)

        def insert() -> list[int]:
            counts = [0] * len(records)
            with self._change() as generation:
                passages = []
                for at in order:
                    record = records[at]
                    self._check_path(record.name, record.path)
                    document_id, counts[at] = self._insert(record, generation)
                    if record.problem is None:
                        own = indexed_passages(record.title, record.sentences)
                        passages.append((document_id, own))
                self.postings.add(passages)
            return counts

        counts = self._repeated(insert)
        self.merge()
        return counts

    def remove(self, names: Sequence[str]) -> None:
        """Remove documents, all or none."""
        self._repeated(lambda: super(PostgresStore, self).remove(sorted(names)))

    def add_root(self, path: str, own_names: int) -> None:
        """Record a folder, and how many of its own names the ids of its files begin with."""
        with self._transaction():
            self._execute(
                "INSERT INTO roots (path, own_names) VALUES (?, ?) ON CONFLICT (path) DO NOTHING",
                *(path, own_names),
            )

    def replace_skipped(self, records: Sequence[SkippedRecord]) -> None:
        """Record what was left out, instead of all that was recorded before."""
        self._repeated(lambda: super(PostgresStore, self).replace_skipped(records))

    def merge(self) -> None:
        """Merge segments of the search index if there are many; another time if one is in use."""
        from psycopg import errors

        with self._errors():
            try:
                self.postings.merge()
            except (errors.DeadlockDetected, errors.LockNotAvailable):
                return  # the next writer does it

    def rebuild_postings(self) -> None:
        """Index all documents anew, in one transaction; writers wait meanwhile."""
        with self._transaction():
            self._execute("LOCK TABLE documents, passages IN SHARE ROW EXCLUSIVE MODE")
            self.postings.clear()
            rows = self._all(
                "SELECT id, title, characters FROM documents WHERE problem IS NULL ORDER BY id"
            )
            for part in _parts(rows):
                self.postings.add(
                    (document_id, indexed_passages(title, self.iter_sentences(document_id)))
                    for document_id, title, _ in part
                )
            self._execute("UPDATE settings SET value = ? WHERE name = 'format'", str(FORMAT))
        self.merge()

    # Verification

    def quick_problem(self) -> str | None:
        """None: the server checks its own pages, and what an answer uses is checked then."""
        return None

    def has_sound_structure(self) -> bool:
        """True: the structure is the server's own."""
        return True

    def rebuild(self, document_ids: Sequence[int]) -> None:
        """Never needed."""
        raise NotImplementedError

    def add_checksums(self, document_id: int) -> None:
        """Never needed: every document has checksums."""
        raise NotImplementedError

    def finish_adding_checksums(self) -> None:
        """Never needed."""
        raise NotImplementedError

    def size_bytes(self, tables: Sequence[str]) -> int:
        """The size of tables with their indexes."""
        row = self._one(
            "SELECT sum(pg_total_relation_size(name::regclass))::bigint "
            "FROM unnest(?::text[]) AS name",
            list(tables),
        )
        return int(row[0])

    def _remember(self, key: tuple[Any, ...], value: object) -> None:
        """Keep a value for the rest of the snapshot, where nothing changes."""
        if (cache := self._pool.cache) is not None:
            cache[key] = value

    def _remembered(self, key: tuple[Any, ...], read: Callable[[], _Result]) -> _Result:
        """What was kept in this snapshot, or else what is read now."""
        cache = self._pool.cache
        if cache is None:
            return read()
        if key not in cache:
            cache[key] = read()
        found: _Result = cache[key]
        return found

    # Statements

    def _all(self, query: str, *values: Any) -> list[Any]:
        with self._errors():
            return self._pool.execute(_with_placeholders(query), values)

    def _execute(self, statement: str, *values: Any) -> None:
        self._pool.execute(_with_placeholders(statement), values)

    def _insert_rows(
        self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._pool.connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def _insert_all(
        self, documents: Iterable[DocumentRecord], generation: int
    ) -> list[tuple[int, int]]:
        return [self._insert(document, generation) for document in documents]

    def _insert(self, document: DocumentRecord, generation: int) -> tuple[int, int]:
        """Returns the id of the document and the number of its sentences."""
        self._delete_name(document.name, generation)
        values = [getattr(document, field) for field in DOCUMENT_COLUMNS.values()]
        document_id = self._insert_document(
            [*DOCUMENT_COLUMNS, "sentences", "generation"], [*values, 0, generation]
        )
        sentences = SentenceColumns.of(document.sentences)
        rows = DocumentRows(document_id, document, len(sentences))
        self._insert_rows("sentences", _SENTENCE_COLUMNS, _sentence_rows(document_id, sentences))
        # The first context is empty, and has no row.
        headings = [
            (document_id, number, *own) for number, own in enumerate(sentences.contexts[1:])
        ]
        self._insert_rows("headings", _HEADING_COLUMNS, headings)
        self._insert_rows("records", RECORD_COLUMNS, rows.records)
        self._execute(
            "UPDATE documents SET sentences = ?, table_rows = ?, checksum = ? WHERE id = ?",
            *(*rows.totals, rows.checksum, document_id),
        )
        return document_id, rows.count

    def _insert_document(self, columns: Sequence[str], values: Sequence[Any]) -> int:
        """Insert a row into `documents` and return its id."""
        marks = ", ".join(["%s"] * len(values))
        insert = f"INSERT INTO documents ({', '.join(columns)}) VALUES ({marks})"
        # If another writer is storing a document of this name, this waits for the end of its
        # transaction, and holds the document that it stored.
        ((document_id, is_new),) = self._pool.execute(
            f"{insert} ON CONFLICT (name) DO UPDATE SET generation = excluded.generation "
            "RETURNING id, xmax = 0",
            values,
        )
        if not is_new:
            given = dict(zip(columns, values, strict=True))
            self._check_path(given["name"], given["path"])
            self._execute("DELETE FROM documents WHERE id = ?", document_id)
            ((document_id,),) = self._pool.execute(f"{insert} RETURNING id", values)
        return int(document_id)

    def _delete(self, document_ids: Sequence[int], generation: int) -> None:  # noqa: ARG002
        self._execute("DELETE FROM documents WHERE id = ANY(?)", list(document_ids))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors(), self._pool.writing():
            yield

    @contextmanager
    def _change(self) -> Iterator[int]:
        """A transaction that is a new generation."""
        with self._transaction():
            yield int(self._one("SELECT nextval('generations')")[0])

    def _repeated(self, transaction: Callable[[], _Result]) -> _Result:
        """Repeat a transaction that failed because another writer changed the same documents."""
        from psycopg import errors

        for attempt in range(_ATTEMPTS):
            try:
                return transaction()
            except CorpusError as error:
                conflicts = (errors.UniqueViolation, errors.DeadlockDetected)
                if not isinstance(error.__cause__, conflicts) or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError  # not reached

    def _check_path(self, name: str, path: str | None) -> None:
        """Raise CorpusError if a file would replace another document of the same name."""
        row = self._one("SELECT path FROM documents WHERE name = ?", name)
        if row is not None and path is not None and row[0] != path:
            raise CorpusError(
                f"{self.name}: Another writer has just added a document with the id {name!r}. "
                "Index again: the file then gets another id."
            )

    def _setting(self, name: str) -> str:
        row = self._one("SELECT value FROM settings WHERE name = ?", name)
        if row is None:
            raise CorpusError(f"{self.name}: The setting {name} is missing.")
        return str(row[0])

    def _errors(self) -> AbstractContextManager[None]:
        return postgres_errors(self._server, self._timeout, rights=_RIGHTS)


class PostgresStorage(Storage):
    """A corpus in a database, by its URL: `postgresql://HOST/DATABASE?schema=NAME`."""

    def __init__(self, store: PostgresStore, url: str) -> None:
        self.store: PostgresStore = store
        self.location = url
        self.place = store.name

    @classmethod
    def open(cls, url: str, *, must_exist: bool = False) -> PostgresStorage:
        """The storage in a database; its tables are created if they are missing."""
        return cls(PostgresStore.open(ServerUrl.parse(url), must_exist=must_exist), url)

    @cached_property
    def phrases(self) -> PostgresPhrases:
        """The phrases in the database."""
        from .postgres_phrases import PostgresPhrases  # it loads ONNX

        return PostgresPhrases(self.store.name, self.store, self.store._pool, self.store._errors)

    def search_index(self, *, rebuild: bool = False) -> PostgresPostings:
        """The index in the database, which always has all documents."""
        if rebuild:
            self.store.rebuild_postings()
        elif (found := self.store.index_format) != FORMAT:
            raise CorpusError(
                f"{self.place}: The passages are indexed in format {found}, and this askline needs "
                f"{FORMAT}. Run this version once: askline index --verify --to URL"
            )
        return self.store.postings

    @contextmanager
    def writing(self, *, repairing: bool = False) -> Iterator[PostgresStore]:
        """Many may write at the same time, if they write the same format."""
        if not repairing:
            self.search_index()
        yield self.store

    def repair_search(self, *, rebuild: bool) -> bool:
        """Index all documents anew if they are indexed in another format."""
        is_rebuilt = rebuild or self.store.index_format != FORMAT
        if is_rebuilt:
            self.store.rebuild_postings()
        return is_rebuilt

    def status(self) -> StorageStatus:
        """The current state; nothing is changed."""
        return StorageStatus(
            searchable=self.store.index_format == FORMAT,
            store_bytes=self.store.size_bytes(_STORE_TABLES),
            search_bytes=self.store.size_bytes(_SEARCH_TABLES),
            writer=None,
        )

    def close(self) -> None:
        """Close the connections."""
        self.store.close()


def _migrate(pool: PostgresPool, schema: str, version: int) -> None:
    from psycopg import errors

    try:
        prepare_schema(pool, schema, index_format=FORMAT)
    except errors.InsufficientPrivilege as error:
        if version == 0:
            raise
        raise CorpusError(
            f"The tables are of version {version}, and this askline needs {len(MIGRATIONS)}. Run "
            "this version once with the role that owns them: askline status URL"
        ) from error


def _sentence_rows(document_id: int, sentences: SentenceColumns) -> Iterator[tuple[Any, ...]]:
    """In the order of _SENTENCE_COLUMNS."""
    numbers = [None, *range(len(sentences.contexts) - 1)]
    contexts = [context_checksum(document_id, *context) for context in sentences.contexts]
    return zip(
        repeat(document_id, len(sentences)),
        range(len(sentences)),
        sentences.starts,
        sentences.ends,
        sentences.numbers,
        sentences.kinds,
        map(numbers.__getitem__, sentences.context_of),
        sentences.texts,
        sentence_checksums(sentences, contexts),
        strict=True,
    )


def _storable(document: DocumentRecord) -> DocumentRecord:
    """The record with its sentences in memory, and without NUL, which PostgreSQL cannot store."""
    sentences = [
        SentenceRecord(*(_without_nul(value) for value in sentence))
        for sentence in document.sentences
    ]
    rows = [RowRecord(row.start, row.row, _without_nul(row.id)) for row in document.rows]
    return replace(
        document,
        title=_without_nul(document.title),
        problem=_without_nul(document.problem),
        skipped_rows=_without_nul(document.skipped_rows),
        sentences=sentences,
        rows=rows,
    )


def _without_nul(value: Any) -> Any:
    """The same number of characters, so that offsets stay right."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


def _parts(
    rows: Sequence[tuple[int, str, int]], characters: int = 4_000_000
) -> Iterator[list[Any]]:
    """Documents in parts of about so many characters."""
    part: list[Any] = []
    size = 0
    for row in rows:
        part.append(row)
        size += row[2]
        if size > characters:
            yield part
            part, size = [], 0
    if part:
        yield part


def _with_placeholders(query: str) -> str:
    return query.replace("?", "%s")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
