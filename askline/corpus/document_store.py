"""
Documents and their sentences in SQL tables: what the embedded and the shared store have in common.

`Store` keeps them in an SQLite file, `PostgresStore` in a PostgreSQL database. Both have the same
tables and checksums. Queries have `?` for values and use only SQL that both understand; the few
statements that differ are methods of the two classes.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from operator import attrgetter, itemgetter
from typing import Any, Literal, Protocol

from ..errors import CorpusError, NotReadReason
from .schema import (
    CHECKED_COLUMNS,
    DOCUMENT_COLUMNS,
    DocumentHeader,
    DocumentRecord,
    FileState,
    RowRecord,
    SentenceRecord,
    SkippedRecord,
    context_checksum,
    document_checksum,
    row_checksum,
    sentence_checksum,
)
from .storage_errors import DamagedDocumentError

__all__ = [
    "CHECKED_HEADER",
    "RECORD_COLUMNS",
    "SELECT_SENTENCES",
    "SELECT_TEXTS",
    "SENTENCES_PER_QUERY",
    "CorpusReader",
    "DocumentReader",
    "DocumentRows",
    "DocumentState",
    "DocumentStore",
    "full_checksum",
]

DocumentState = Literal["intact", "unchecked", "damaged"]
"""`unchecked`: stored by an earlier version, without checksums."""

_SAMPLED_DOCUMENTS = 50
_SAMPLED_SENTENCES = 10
SENTENCES_PER_QUERY = 10_000
_STATE_COLUMNS = "size, modified, sha256, reading, problem, problem_line, left_out, problem_reason"
CHECKED_HEADER = f"{', '.join(CHECKED_COLUMNS)}, checksum"
_SELECT_HEADER = f"SELECT {CHECKED_HEADER} FROM documents WHERE id = ?"
SELECT_SENTENCES = """
SELECT ordinal, first, last, place, kind, {columns}
FROM sentences s LEFT JOIN headings h ON h.document = s.document AND h.number = s.heading
WHERE s.document = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal
"""
SELECT_TEXTS = "coalesce(h.text, ''), s.text, coalesce(h.path, ''), coalesce(h.lead_in, '')"
_SELECT_UNCHECKED = SELECT_SENTENCES.format(columns=SELECT_TEXTS)
_SELECT_CHECKED = SELECT_SENTENCES.format(columns=f"{SELECT_TEXTS}, s.checksum")
_VALUES = attrgetter(*DOCUMENT_COLUMNS.values())
_CHECKED = itemgetter(*map([*DOCUMENT_COLUMNS, "sentences", "table_rows"].index, CHECKED_COLUMNS))
RECORD_COLUMNS = "document first row id checksum".split()


class DocumentReader(Protocol):
    """Documents by id, as retrieval reads them. A `DocumentStore` is one."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Inside it, a store that many write to shows this thread one state."""
        ...

    def counts(self) -> tuple[int, int, int]:
        """Counts of readable documents, of their sentences, and of their characters."""
        ...

    def document(self, document_id: int) -> DocumentHeader | None:
        """The header of a document; None if it has been removed. Its checksum is checked."""
        ...

    def documents(self, document_ids: Iterable[int]) -> dict[int, DocumentHeader]:
        """The headers of documents by id, without those that have been removed; checked."""
        headers = {document_id: self.document(document_id) for document_id in document_ids}
        return {document_id: header for document_id, header in headers.items() if header}

    def document_id(self, name: str) -> int | None:
        """The id of the document of that name."""
        ...

    def sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """The sentences `first` to `last` of a document, both included; checked."""
        ...

    def unchecked_sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """Like `sentences`, but faster, and damaged sentences are returned too."""
        ...

    def passage_sentences(
        self, places: Sequence[tuple[int, int, int]]
    ) -> list[list[SentenceRecord]]:
        """The unchecked sentences of passages, each given by document, first and last sentence."""
        return [self.unchecked_sentences(*place) for place in places]

    def row_at(self, document_id: int, offset: int) -> RowRecord | None:
        """The csv or jsonl row that contains a character of the original; None in other files."""
        ...


class CorpusReader(DocumentReader, Protocol):
    """All that a corpus reads. A `DocumentStore` is one, and so are the stores of all shards."""

    @property
    def identity(self) -> str:
        """Random digits, drawn when the corpus was created."""
        ...

    @property
    def generation(self) -> int:
        """The number of changes so far."""
        ...

    def file_state(self, name: str) -> FileState | None:
        """The state in which the file of that name was last read; None if it is not stored."""
        ...

    def source_path(self, name: str) -> str | None:
        """The absolute path that a document was read from; None for a text."""
        ...

    def list_documents(self, *, after: str, limit: int) -> list[tuple[Any, ...]]:
        """Name, title, kind, unit, sentences, characters and problem of documents, by name."""
        ...

    def unreadable(self) -> list[tuple[str, int, str, NotReadReason]]:
        """Name, line, problem and reason of each file that could not be read."""
        ...

    def skipped(self) -> list[SkippedRecord]:
        """What was left out when paths were added, by path, reason and kind."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


class DocumentStore(CorpusReader, ABC):
    """
    The tables of a corpus. Several threads may use it.

    A document is written in one transaction with all its sentences: it is there whole or not at
    all. An id of a document is never used again, because other indexes refer to it.
    """

    name: str
    """The file or the database, for messages."""
    on_stored: Callable[[int, DocumentRecord], None] | None = None
    """Called with the id and the record of each document that `put` has committed."""

    # Statements

    @abstractmethod
    def _all(self, query: str, *values: Any) -> list[Any]:
        """All rows of a query."""

    @abstractmethod
    def _execute(self, statement: str, *values: Any) -> None:
        """Execute a statement in the running transaction."""

    @abstractmethod
    def _insert_rows(
        self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Insert rows in the running transaction."""

    @abstractmethod
    def _insert_all(
        self, documents: Iterable[DocumentRecord], generation: int
    ) -> list[tuple[int, int]]:
        """Insert documents in the running transaction; the id and the sentences of each."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """A transaction of this thread: all statements in it have an effect, or none has."""

    @abstractmethod
    def _change(self) -> AbstractContextManager[int]:
        """A transaction that is a new generation, with its number."""

    @abstractmethod
    def _delete(self, document_ids: Sequence[int], generation: int) -> None:
        """Delete documents in the running transaction."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections. No data is lost if this is not called."""

    def _one(self, query: str, *values: Any) -> Any:
        """The first row of a query; None if there is none."""
        return next(iter(self._all(query, *values)), None)

    # Reading

    @property
    @abstractmethod
    def identity(self) -> str:
        """Eight random bytes, in hexadecimal, drawn when the store was created."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """The number of changes so far."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Inside it, a store that many write to shows this thread one state."""
        return nullcontext()

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

    def is_new(self) -> bool:
        """Whether nothing was ever stored, and no other process can store anything meanwhile."""
        return False

    def source_path(self, name: str) -> str | None:
        """The absolute path that a document was read from; None for a text."""
        row = self._one("SELECT path FROM documents WHERE name = ?", name)
        return row[0] if row else None

    def files(self, *, prefix: str) -> list[tuple[str, str]]:
        """Name and path of each file whose path starts with `prefix`, sorted by path."""
        # As a range, so that the index on paths is used.
        query = "SELECT name, path FROM documents WHERE path >= ? AND path < ? ORDER BY path"
        return self._all(query, prefix, prefix + "\U0010ffff")

    @abstractmethod
    def roots(self) -> list[tuple[str, int]]:
        """Folders that were added, in order, and how many of their own names ids begin with."""

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
            "SELECT count(*), coalesce(sum(sentences), 0), coalesce(sum(characters), 0) "
            "FROM documents WHERE problem IS NULL"
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
        return self._checked_header(document_id, *row)

    def document_id(self, name: str) -> int | None:
        """The id of the document of that name."""
        row = self._one("SELECT id FROM documents WHERE name = ?", name)
        return int(row[0]) if row else None

    def spread_ids(self, count: int) -> list[int]:
        """Ids of at most `count` readable documents, evenly spread over all ids."""
        first, last = self._one("SELECT min(id), max(id) FROM documents WHERE problem IS NULL")
        if first is None:
            return []
        query = "SELECT min(id) FROM documents WHERE problem IS NULL AND id >= ?"
        places = (first + at * (last - first) // max(1, count - 1) for at in range(count))
        return sorted({self._one(query, place)[0] for place in places})

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
            self._compare(document_id, checksum, full_checksum, document_id, sentence)
            sentences.append(sentence)
        return sentences

    def unchecked_sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """
        Like `sentences`, but faster, and damaged sentences are returned too.

        For searching: a damaged document does not stop questions that others answer.
        """
        rows = self._all(_SELECT_UNCHECKED, document_id, first, last)
        return [SentenceRecord(*row) for row in rows]

    def iter_sentences(self, document_id: int, first: int = 0) -> Iterator[SentenceRecord]:
        """The sentences of a document in order, unchecked, read in parts to save memory."""
        step = SENTENCES_PER_QUERY
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

    # Writing

    def put(self, documents: Iterable[DocumentRecord]) -> list[int]:
        """
        Store documents, all or none; each replaces a document of the same name.

        Returns the number of sentences of each.
        """
        records = list(documents)
        with self._change() as generation:
            stored = self._insert_all(records, generation)
        if self.on_stored is not None:
            for (document_id, _), record in zip(stored, records, strict=True):
                self.on_stored(document_id, record)
        return [count for _, count in stored]

    def remove(self, names: Sequence[str]) -> None:
        """Remove documents, all or none."""
        with self._change() as generation:
            for name in names:
                self._delete_name(name, generation)

    @abstractmethod
    def add_root(self, path: str, own_names: int) -> None:
        """Record a folder, and how many of its own names the ids of its files begin with."""

    def replace_skipped(self, records: Sequence[SkippedRecord]) -> None:
        """Record what was left out, instead of all that was recorded before."""
        if self.skipped() == sorted(records):
            return
        with self._transaction():
            self._execute("DELETE FROM skipped")
            self._insert_rows("skipped", SkippedRecord._fields, records)

    def touch(self, files: Iterable[tuple[str, int, int | None]]) -> None:
        """Record a new size and date for each name; the content has not changed."""
        with self._transaction():
            for name, size, modified in files:
                self._execute(
                    "UPDATE documents SET size = ?, modified = ? WHERE name = ?",
                    *(size, modified, name),
                )

    # Verification

    @abstractmethod
    def quick_problem(self) -> str | None:
        """What a check with a bounded cost finds; None if nothing is wrong."""

    @abstractmethod
    def has_sound_structure(self) -> bool:
        """Whether the tables and indexes are consistent."""

    @abstractmethod
    def rebuild(self, document_ids: Sequence[int]) -> None:
        """Write all tables anew with these documents only, if the structure is not sound."""

    @abstractmethod
    def add_checksums(self, document_id: int) -> None:
        """Add checksums to a document of an earlier version, as it is stored now."""

    @abstractmethod
    def finish_adding_checksums(self) -> None:
        """Record that all documents have checksums now, so that a missing one is damage."""

    def document_ids(self) -> list[int]:
        """The ids of all documents, in order; in a damaged table, those that can be read."""
        return [row[0] for row in self._all("SELECT id FROM documents ORDER BY id")]

    def check_document(self, document_id: int) -> DocumentState:
        """Read a whole document, and compare it with its checksums."""
        try:
            if self.document(document_id) is None:
                return "damaged"  # its id is in an index only
            sentences, table_rows, checksum = self._one(
                "SELECT sentences, table_rows, checksum FROM documents WHERE id = ?", document_id
            )
            if not self._are_sentences_intact(document_id, sentences):
                return "damaged"
            rows = self._all(
                "SELECT first, row, id, checksum FROM records WHERE document = ?", document_id
            )
            for row in rows:
                self._checked_row(document_id, *row)
        except CorpusError:
            return "damaged"
        if table_rows not in (None, len(rows)):
            return "damaged"
        return "intact" if checksum is not None else "unchecked"

    def _are_sentences_intact(self, document_id: int, count: int) -> bool:
        """Whether there are as many sentences; CorpusError if one differs from its checksum."""
        for first in range(0, count, SENTENCES_PER_QUERY):
            self.sentences(document_id, first, first + SENTENCES_PER_QUERY - 1)
        # Searching a damaged tree can lead to rows of other documents.
        keys = self._all(
            "SELECT document, ordinal FROM sentences WHERE document = ? ORDER BY ordinal",
            document_id,
        )
        return keys == [(document_id, ordinal) for ordinal in range(count)]

    def origin(self, document_id: int) -> tuple[str, str | None, bool]:
        """The name and the path of a document that may be damaged, and whether they are intact."""
        name, path, is_intact = self._readable_name(document_id), None, False
        with suppress(CorpusError):
            found = self._one("SELECT path FROM documents WHERE id = ?", document_id)
            path = found[0] if found else None
            is_intact = self.document(document_id) is not None
        return name, path, is_intact

    def forget_states(self, paths: Iterable[str]) -> None:
        """Make the next `Corpus.add` read the files at these paths, also if they are unchanged."""
        with self._transaction():
            for path in paths:
                self._execute(
                    "UPDATE documents SET size = NULL, modified = NULL, sha256 = '', "
                    "checksum = NULL WHERE path = ?",
                    path,
                )

    def discard(self, document_ids: Sequence[int]) -> None:
        """Remove documents by id, because their names may be damaged."""
        with self._change() as generation:
            self._delete(document_ids, generation)

    def _sample_documents(self) -> None:
        """Check a sample of documents; CorpusError if one is damaged."""
        last = self._one("SELECT max(id) FROM documents")[0] or 0
        for _ in range(_SAMPLED_DOCUMENTS):
            found = self._one(
                "SELECT id, sentences FROM documents WHERE id >= ? ORDER BY id LIMIT 1",
                random.randint(1, max(1, last)),
            )
            if found is not None and self.document(found[0]) is not None:
                first = random.randint(0, max(0, found[1] - 1))
                self.sentences(found[0], first, first + _SAMPLED_SENTENCES)

    def _delete_name(self, name: str, generation: int) -> None:
        rows = self._all("SELECT id FROM documents WHERE name = ?", name)
        if rows:
            self._delete([row[0] for row in rows], generation)

    def _checked_header(self, document_id: int, *columns: Any) -> DocumentHeader:
        *header, checksum = columns
        self._compare(document_id, checksum, document_checksum, document_id, header)
        fields = dict(zip(CHECKED_COLUMNS, header, strict=True))
        return DocumentHeader(*(fields[field] for field in DocumentHeader._fields))

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
        if stored is None and self._may_lack_checksums(document_id):
            return
        try:
            if checksum(*arguments) == stored:
                return
        except (AttributeError, TypeError):  # even the types of the columns are damaged
            pass
        raise self._damaged(document_id)

    def _may_lack_checksums(self, document_id: int) -> bool:  # noqa: ARG002
        """Whether a document was stored by an earlier version, without checksums."""
        return False

    @contextmanager
    def _document_errors(self, document_id: int) -> Iterator[None]:  # noqa: ARG002
        """Name the document in errors that concern it alone."""
        yield

    def _damaged(self, document_id: int) -> DamagedDocumentError:
        return DamagedDocumentError.of(self._readable_name(document_id))

    def _readable_name(self, document_id: int) -> str:
        """The name of a document, which may itself be damaged."""
        row = self._one("SELECT name FROM documents WHERE id = ?", document_id)
        return str(row[0]) if row else f"number {document_id}"


def full_checksum(document_id: int, sentence: SentenceRecord) -> int:
    """The checksum of a sentence with its context."""
    context = sentence.heading, sentence.path, sentence.lead_in
    return sentence_checksum(sentence, context_checksum(document_id, *context))


class DocumentRows:
    """The rows of a document in the tables `documents` and `records`; `count` sentences."""

    def __init__(self, document_id: int, document: DocumentRecord, count: int) -> None:
        self.document_id = document_id
        self.document = document
        self.count = count
        self.records = [
            (document_id, *row, row_checksum(document_id, row)) for row in document.rows
        ]
        self.values: tuple[Any, ...] = _VALUES(document)
        """Of the columns of DOCUMENT_COLUMNS."""
        self.totals = self.count, len(self.records)
        """The columns `sentences` and `table_rows`."""
        self.checksum = document_checksum(document_id, _CHECKED((*self.values, *self.totals)))
