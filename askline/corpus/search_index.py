"""
The search index: passages under their words, in tantivy, ranked by BM25.

It is derived from the store and updated from it. A stamp in the index says which store, and which
generation of it, the index contains; the stamp is committed together with the passages, so the two
always agree. An update can be interrupted at any point and repeated, because the passages of a
document are deleted before they are added.
"""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import tantivy

from ..errors import CorpusError
from .bm25 import Stemmer, inverse_document_frequency
from .lock import BusyError, writer_lock
from .passages import IndexedPassage, PassageHit, indexed_passages
from .schema import DocumentRecord
from .storage_errors import SearchIndexDamagedError, search_read_errors, search_write_errors
from .store import Store

__all__ = [
    "FORMAT",
    "SEARCH_FOLDER",
    "FieldStatistics",
    "FieldTerm",
    "FoundPassage",
    "PassageWriter",
    "SearchIndex",
    "TermMatch",
    "field_terms",
    "sync_folder_index",
    "synced_search_index",
    "term_weights",
]

FORMAT = 3
"""Raise this when fields, words or passages change: an index of another format is rebuilt."""

SEARCH_FOLDER = "search"
_WRITER_BYTES = 24_000_000  # with 64 MB, indexing took 30 MB more and was hardly faster
_ANALYZER = "askline"
_FOOTER_CONSTANT = 1337
_FILES_WITHOUT_FOOTER = (".json", ".lock")
_FIELDS = {"text": "freq", "title": "basic"}  # the searched fields, and what is indexed of each
_RARE_PREFIXES = "xqzjkyvwugohbnlfiermdtaspc0123456789"  # of terms, rare ones first

FieldTerm = tuple[str, str]
"""A searched field, `text` or `title`, and a term of it."""


def synced_search_index(
    store: Store, folder: Path | None, search: SearchIndex | None, *, rebuild: bool = False
) -> SearchIndex:
    """
    A search index that agrees with the store.

    `search` is returned if it is up to date. Otherwise the index in `folder` is opened and updated,
    or rebuilt if it is missing or damaged, or with `rebuild`. While another process is writing, an
    index of an older generation is used as it is. If the folder is read-only, an index is built in
    memory.
    """
    current = (store.identity, store.generation)
    if search is not None and not rebuild and search.stamp() == current:
        return search
    if folder is None:
        return _synced(search if search and not rebuild else SearchIndex.in_memory(), store)
    search = None if rebuild else SearchIndex.open(folder / SEARCH_FOLDER)
    stamp = search.stamp() if search is not None else None
    if search is not None and stamp == current:
        return search
    try:
        with writer_lock(folder):
            return sync_folder_index(store, folder, search, rebuild=rebuild)
    except BusyError:
        if search is not None and stamp is not None and stamp[0] == store.identity:
            return search
    except CorpusError:
        pass  # the disk is full or the folder is read-only
    return _synced(SearchIndex.in_memory(), store)


def sync_folder_index(
    store: Store, folder: Path, search: SearchIndex | None = None, *, rebuild: bool = False
) -> SearchIndex:
    """
    Update the index in a folder, which needs the writer lock.

    It is rebuilt if it is missing or damaged, if an update fails, and with `rebuild`.
    """
    search = search or SearchIndex.open(folder / SEARCH_FOLDER)
    usable = not rebuild and search is not None and search.stamp() is not None
    try:
        if search is None or not usable:
            search = SearchIndex.create(folder / SEARCH_FOLDER)
        search.update(store)
    except CorpusError:
        if not usable:
            raise
        search = SearchIndex.create(folder / SEARCH_FOLDER)
        search.update(store)
    store.forget_removals(store.generation)
    return search


def _synced(search: SearchIndex, store: Store) -> SearchIndex:
    search.update(store)
    return search


class FoundPassage(NamedTuple):
    """A passage, and where tantivy keeps it."""

    hit: PassageHit
    address: tantivy.DocAddress


class TermMatch(NamedTuple):
    """What a term adds to the score of a passage."""

    field: str
    score: float
    occurrences: float
    """Of the term in the field."""
    length: float
    """Terms of the field, rounded as tantivy stores it."""


class FieldStatistics(NamedTuple):
    """What BM25 knows of a field. Deleted passages count until tantivy merges its segments."""

    passages: int
    """Passages and the stamp."""
    average_length: float


def field_terms(terms: Mapping[str, float], titles: float) -> dict[FieldTerm, float]:
    """The weight of each term in each field: by its factor, and `titles` times that in titles."""
    weights: dict[FieldTerm, float] = {}
    for term, factor in terms.items():
        weights["text", term] = factor
        if titles:
            weights["title", term] = titles * factor
    return weights


class SearchIndex:
    """A tantivy index of passages. Several threads may read it; `update` needs the writer lock."""

    def __init__(self, index: tantivy.Index, folder: Path | None) -> None:
        self.folder = folder
        self._index = index
        stemmer = Stemmer()
        index.register_tokenizer(_ANALYZER, stemmer.analyzer)
        index.config_reader("manual")  # otherwise a thread per index waits for commits
        self.stem = stemmer.stem

    @classmethod
    def in_memory(cls) -> SearchIndex:
        """An empty index in memory, which ends with its process."""
        return cls(tantivy.Index(_schema()), None)

    @classmethod
    def open(cls, folder: Path) -> SearchIndex | None:
        """The index in a folder; None if it is missing or unusable."""
        try:
            with search_read_errors(folder):
                return cls(tantivy.Index.open(str(folder)), folder)
        except SearchIndexDamagedError:
            return None

    @classmethod
    def create(cls, folder: Path) -> SearchIndex:
        """A new, empty index that replaces what is in the folder."""
        with search_write_errors(folder):
            if folder.is_dir():
                shutil.rmtree(folder)
            else:
                folder.unlink(missing_ok=True)
            folder.mkdir()
            return cls(tantivy.Index(_schema(), path=str(folder)), folder)

    # Reading

    def stamp(self) -> tuple[str, int] | None:
        """The identity and generation of the store that is indexed; None if unreadable."""
        try:
            with search_read_errors(self.folder):
                return self._read_stamp()
        except SearchIndexDamagedError:
            return None

    def search(
        self, terms: Mapping[str, float], limit: int, *, titles: float = 0.0
    ) -> list[PassageHit]:
        """
        At most `limit` passages with the highest BM25 scores, best first.

        Each term counts by its factor, and `titles` times as much again in titles and headings.
        """
        return [found.hit for found in self.find(field_terms(terms, titles), limit)]

    def find(self, weights: Mapping[FieldTerm, float], limit: int) -> list[FoundPassage]:
        """At most `limit` passages, best first, for terms with a weight in each field."""
        with search_read_errors(self.folder):
            return self._best_passages(weights, limit) if weights else []

    def term_weights(self, terms: Iterable[str]) -> dict[str, float]:
        """The inverse document frequency of each term over passages; unknown terms are left out."""
        return term_weights(self.frequencies(("text", term) for term in terms), self.passages)

    @property
    def passages(self) -> int:
        """The number of passages and the stamp, without deleted ones."""
        with search_read_errors(self.folder):
            return self._index.searcher().num_docs

    def frequencies(self, terms: Iterable[FieldTerm]) -> dict[FieldTerm, int]:
        """The number of passages with each term in its field; deleted passages may count too."""
        with search_read_errors(self.folder):
            searcher = self._index.searcher()
            return {term: searcher.doc_freq(*term) for term in terms}

    def field_statistics(self) -> dict[str, FieldStatistics]:
        """The statistics of each field that has terms."""
        found = {}
        with search_read_errors(self.folder):
            searcher = self._index.searcher()
            for field in _FIELDS:
                for prefix in chain(_RARE_PREFIXES, [""]):
                    terms = searcher.terms_with_prefix(field, prefix, limit=1)
                    query = self._query({(field, term): 1.0 for term, _ in terms})
                    # A term may be left of deleted passages alone.
                    if hits := searcher.search(query, limit=1, count=False).hits:
                        values = _explained_values(_explain(query, searcher, hits[0][1]))
                        found[field] = FieldStatistics(int(values["N"]), values["avgdl"])
                        break
        return found

    def explainer(
        self, weights: Mapping[FieldTerm, float]
    ) -> Callable[[tantivy.DocAddress], list[TermMatch]]:
        """A function from a passage to the terms that match in it, as tantivy explains scores."""
        searcher = self._index.searcher()
        queries = {
            field: self._query({key: own for key, own in weights.items() if key[0] == field})
            for field in dict.fromkeys(field for field, _ in weights)
        }

        def matches(address: tantivy.DocAddress) -> list[TermMatch]:
            with search_read_errors(self.folder):
                return [
                    match
                    for field, query in queries.items()
                    for match in _term_matches(field, _explain(query, searcher, address))
                ]

        return matches

    def _read_stamp(self) -> tuple[str, int] | None:
        searcher = self._index.searcher()
        query = tantivy.Query.term_query(self._index.schema, "mark", "stamp", "basic")
        hits = searcher.search(query, limit=1, count=False).hits
        if not hits:
            return None
        stored = searcher.doc(hits[0][1]).get_first("stamp") or ""
        identity, generation, index_format = str(stored).split(" ")
        return (identity, int(generation)) if int(index_format) == FORMAT else None

    def _best_passages(self, weights: Mapping[FieldTerm, float], limit: int) -> list[FoundPassage]:
        searcher = self._index.searcher()
        hits = searcher.search(self._query(weights), limit=limit, count=False).hits
        addresses = [address for _, address in hits]
        columns = [
            searcher.fast_field_values(name, addresses) for name in ("document", "first", "last")
        ]
        return [
            FoundPassage(
                PassageHit(int(document_id or 0), int(first or 0), int(last or 0), score), at
            )
            for (score, at), document_id, first, last in zip(hits, *columns, strict=True)
        ]

    def _query(self, weights: Mapping[FieldTerm, float]) -> tantivy.Query:
        schema = self._index.schema
        clauses = []
        for (field, term), weight in weights.items():
            query = tantivy.Query.term_query(schema, field, term, _FIELDS[field])
            clauses.append((tantivy.Occur.Should, tantivy.Query.boost_query(query, weight)))
        return tantivy.Query.boolean_query(clauses)

    def is_intact(self) -> bool:
        """Whether the files have the checksums that tantivy wrote at their ends."""
        files = self.folder.iterdir() if self.folder is not None else ()
        return all(map(_has_own_checksum, files))

    # Writing

    def update(self, store: Store) -> None:
        """Apply the changes of the store since the stamp, and write a new stamp."""
        stamp = self.stamp()
        if stamp == (store.identity, store.generation):
            return
        since = stamp[1] if stamp and stamp[0] == store.identity else -1
        with search_write_errors(self.folder):
            writer = self._writer()
            if not store.removals_from <= since <= store.generation:
                since = -1
                writer.delete_all_documents()
            self._commit(writer, store, since, frozenset())

    def _writer(self) -> tantivy.IndexWriter:
        writer = self._index.writer(_WRITER_BYTES, 1)
        # Files of a killed writer have names that this writer would use.
        writer.garbage_collect_files()
        return writer

    def _commit(
        self, writer: tantivy.IndexWriter, store: Store, since: int, written: Set[int]
    ) -> None:
        """Write what has changed since a generation, without the documents already written."""
        identity, generation = store.identity, store.generation
        removed, added = store.changes(since)
        for document_id in removed:
            writer.delete_documents_by_term("document", document_id)
        for document_id in added:
            if document_id not in written:
                writer.delete_documents_by_term("document", document_id)
                header = store.document(document_id)
                title = header.title if header else ""
                own = indexed_passages(title, store.iter_sentences(document_id))
                _add_passages(writer, document_id, own)
        writer.delete_documents_by_term("mark", "stamp")
        writer.add_document(
            tantivy.Document(mark="stamp", stamp=f"{identity} {generation} {FORMAT}")
        )
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()


class PassageWriter:
    """
    Writes the passages of documents to the index while the documents are stored.

    `add` gets each document once it is committed in the store. Nothing is visible in the index
    before `finish`, which writes the stamp: if the process ends before that, or if writing fails,
    the next update takes the documents from the store. Needs the writer lock of the folder.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self.search = SearchIndex.open(folder / SEARCH_FOLDER)
        self._store = store
        self._folder = folder / SEARCH_FOLDER
        self._start = store.identity, store.generation
        self._writer: tantivy.IndexWriter | None = None
        self._written: set[int] = set()
        is_current = self.search is not None and self.search.stamp() == self._start
        self._is_new = not is_current and store.is_new()
        self._is_usable = is_current or self._is_new

    def add(self, document_id: int, document: DocumentRecord) -> None:
        """Write a document that was just stored."""
        if not self._is_usable or document.passages is None or document.problem is not None:
            return  # it is taken from the store later
        try:
            with search_write_errors(self._folder):
                if self._writer is None:
                    if self._is_new:
                        self.search = SearchIndex.create(self._folder)
                    assert self.search is not None  # it is current
                    self._writer = self.search._writer()
                _add_passages(self._writer, document_id, document.passages.passages())
        except CorpusError:
            self.close()
        else:
            self._written.add(document_id)

    def finish(self) -> None:
        """Make what was added visible, with all other changes of the store."""
        store, (identity, since) = self._store, self._start
        writer, self._writer = self._writer, None
        if writer is None or self.search is None:
            return
        if store.identity != identity or not store.removals_from <= since <= store.generation:
            _abandon(writer)  # the store was written anew
            return
        with suppress(CorpusError), search_write_errors(self._folder):
            self.search._commit(writer, store, since, self._written)
            return
        _abandon(writer)

    def close(self) -> None:
        """Forget what was added and not finished."""
        writer, self._writer = self._writer, None
        self._is_usable = False
        if writer is not None:
            _abandon(writer)


def _abandon(writer: tantivy.IndexWriter) -> None:
    """Release the lock of the index; a writer that is only forgotten may be kept by a traceback."""
    with suppress(Exception):
        writer.rollback()
        writer.wait_merging_threads()


def term_weights(frequencies: Mapping[FieldTerm, int], passages: int) -> dict[str, float]:
    """The inverse document frequency of each term; unknown terms are left out."""
    return {
        # Deleted passages stay in the counts until tantivy merges its segments.
        term: inverse_document_frequency(min(count, passages), passages)
        for (_, term), count in frequencies.items()
        if count
    }


def _explain(
    query: tantivy.Query, searcher: tantivy.Searcher, address: tantivy.DocAddress
) -> dict[str, Any] | None:
    """How the score of a passage comes about; None if it does not match."""
    try:
        explanation: dict[str, Any] = json.loads(query.explain(searcher, address).to_json())
    except ValueError:
        return None
    return explanation


def _term_matches(field: str, explanation: dict[str, Any] | None) -> Iterator[TermMatch]:
    """The matches in an explanation of a sum of weighted terms."""
    if explanation is None:
        return
    for detail in explanation.get("details", ()):
        if detail["description"].startswith("Boost"):
            values = _explained_values(detail)
            yield TermMatch(field, detail["value"], values["freq"], values["dl"])
        else:
            yield from _term_matches(field, detail)


def _explained_values(explanation: dict[str, Any] | None) -> dict[str, float]:
    """All values of an explanation by the names of tantivy, such as `dl`."""
    if explanation is None:
        return {}
    values = {explanation["description"].partition(",")[0]: float(explanation["value"])}
    for detail in explanation.get("details", ()):
        values |= _explained_values(detail)
    return values


def _has_own_checksum(file: Path) -> bool:
    """
    Compare a file with its footer: JSON with the CRC-32, its length, and a constant.

    True for a file without a footer, such as the list of segments. Tantivy itself notices if the
    footer of a segment is missing.
    """
    data = file.read_bytes()
    length, constant = struct.unpack("<II", data[-8:]) if len(data) >= 8 else (0, 0)
    if constant != _FOOTER_CONSTANT:
        return file.suffix in _FILES_WITHOUT_FOOTER
    try:
        expected = json.loads(data[-8 - length : -8])["crc"]
    except (ValueError, KeyError, TypeError):
        return False
    return bool(zlib.crc32(data[: -8 - length]) == expected)


def _add_passages(
    writer: tantivy.IndexWriter, document_id: int, passages: Iterable[IndexedPassage]
) -> None:
    for first, last, words, title_words in passages:
        document = tantivy.Document()  # faster without keyword arguments
        document.add_integer("document", document_id)
        document.add_integer("first", first)
        document.add_integer("last", last)
        document.add_text("text", words)
        document.add_text("title", title_words)
        writer.add_document(document)


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("document", indexed=True, fast=True)
    builder.add_integer_field("first", fast=True)
    builder.add_integer_field("last", fast=True)
    builder.add_text_field("text", tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_text_field("title", tokenizer_name=_ANALYZER, index_option="basic")
    builder.add_text_field("mark", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("stamp", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()
