"""
Passages: runs of neighbouring sentences, which is what the search index holds.

A sentence alone often lacks the words that a question about it uses, for they stand next to it. So
retrieval looks for passages first, and for sentences inside them
(research/decisions/corpus-store.md has the figures).

The search index: passages under the words in them, with tantivy, ranked by BM25.

It is derived from the store and follows it. A stamp inside it says which store and which generation
it has all of; the stamp is committed together with the passages, so they always agree. Following
can be cut short at any point and done again, for a document's passages are taken out before they
are put in.

Keeping the search index in step with the store, without anybody having to ask for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import tantivy

from ..errors import CorpusError
from ..text.words import split_words
from .bm25 import Stemmer, inverse_document_frequency
from .lock import BusyError, writing
from .schema import SentenceRecord
from .storage_errors import SearchIndexDamagedError, search_read_errors, search_write_errors
from .store import Store

__all__ = [
    "FORMAT",
    "PASSAGE_CHARACTERS",
    "SEARCH_FOLDER",
    "Passage",
    "PassageHit",
    "SearchIndex",
    "current_search_index",
    "follow",
    "passages",
]

PASSAGE_CHARACTERS = 1000
"""Recall was the same from 700 upwards and lower at 400; longer ones give more to look through."""


class Passage(NamedTuple):
    """Sentences `first` to `last` of a document, both included, and the words to find them by."""

    first: int
    last: int
    text: str


def passages(sentences: Iterable[SentenceRecord]) -> Iterator[Passage]:
    """Cut a document under each heading, and where a passage would become too long."""
    run: list[SentenceRecord] = []
    size = 0
    for row in sentences:
        if run and (row.heading != run[0].heading or size + len(row.text) > PASSAGE_CHARACTERS):
            yield _passage(run)
            run, size = [], 0
        run.append(row)
        size += len(row.text)
    if run:
        yield _passage(run)


def _passage(run: Sequence[SentenceRecord]) -> Passage:
    text = "\n".join([run[0].heading, *(row.text for row in run)])
    return Passage(run[0].ordinal, run[-1].ordinal, text)


FORMAT = 1
"""Raised when fields, words or passages change: an index of another format is built anew."""

_HEAP_BYTES = 24_000_000
"""Of the writer. With 64 MB, indexing took 30 MB more and was hardly faster."""
_ANALYSER = "askline"


class PassageHit(NamedTuple):
    """Sentences `first` to `last` of a document, by its id in the store."""

    document: int
    first: int
    last: int
    score: float


class SearchIndex:
    """Readable by several threads at once; `follow` wants the writer lock."""

    def __init__(self, index: tantivy.Index, folder: Path | None) -> None:
        self.folder = folder
        self._index = index
        stems = Stemmer()
        index.register_tokenizer(_ANALYSER, stems.analyser)
        index.config_reader("manual")  # or a thread for each index waits for others' commits
        self.stem, self.terms = stems.stem, stems.terms

    @classmethod
    def in_memory(cls) -> SearchIndex:
        """An empty index that goes with its process."""
        return cls(tantivy.Index(_schema()), None)

    @classmethod
    def open(cls, folder: Path) -> SearchIndex | None:
        """The index in a folder; None where there is none or it cannot be used."""
        try:
            with search_read_errors(folder):
                return cls(tantivy.Index.open(str(folder)), folder)
        except SearchIndexDamagedError:
            return None

    @classmethod
    def create(cls, folder: Path) -> SearchIndex:
        """A new, empty index in place of whatever is in the folder."""
        with search_write_errors(folder):
            if folder.is_dir():
                shutil.rmtree(folder)
            else:
                folder.unlink(missing_ok=True)
            folder.mkdir()
            return cls(tantivy.Index(_schema(), path=str(folder)), folder)

    # Reading

    def stamp(self) -> tuple[str, int] | None:
        """The store and the generation that this index has all of; None where it cannot say."""
        try:
            with search_read_errors(self.folder):
                return self._stamp()
        except SearchIndexDamagedError:
            return None

    def _stamp(self) -> tuple[str, int] | None:
        searcher = self._index.searcher()
        query = tantivy.Query.term_query(self._index.schema, "mark", "stamp", "basic")
        hits = searcher.search(query, limit=1, count=False).hits
        if not hits:
            return None
        stored = searcher.doc(hits[0][1]).get_first("stamp") or ""
        identity, generation, written = str(stored).split(" ")
        return (identity, int(generation)) if int(written) == FORMAT else None

    def search(self, terms: Sequence[str], limit: int) -> list[PassageHit]:
        """The passages that share most with the terms, as BM25 counts, best first."""
        with search_read_errors(self.folder):
            return self._best(terms, limit) if terms else []

    def _best(self, terms: Sequence[str], limit: int) -> list[PassageHit]:
        schema, searcher = self._index.schema, self._index.searcher()
        parts = [
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", term, "freq"))
            for term in terms
        ]
        hits = searcher.search(tantivy.Query.boolean_query(parts), limit=limit, count=False).hits
        places = [address for _, address in hits]
        fields = [
            searcher.fast_field_values(name, places) for name in ("document", "first", "last")
        ]
        return [
            PassageHit(int(document or 0), int(first or 0), int(last or 0), score)
            for (score, _), document, first, last in zip(hits, *fields, strict=True)
        ]

    def weights(self, terms: Iterable[str]) -> dict[str, float]:
        """How much each term says: its inverse document frequency over passages."""
        with search_read_errors(self.folder):
            searcher = self._index.searcher()
            total = searcher.num_docs
            # Passages that were taken out stay in the counts until tantivy tidies up.
            counts = {term: min(searcher.doc_freq("text", term), total) for term in terms}
        return {
            term: inverse_document_frequency(count, total)
            for term, count in counts.items()
            if count
        }

    # Writing

    def follow(self, store: Store) -> None:
        """Bring the index to the store's generation, and leave a stamp that says so."""
        stamp, identity, generation = self.stamp(), store.identity, store.generation
        if stamp == (identity, generation):
            return
        with search_write_errors(self.folder):
            writer = self._index.writer(_HEAP_BYTES, 1)
            # What a killed writer left would bear the names of files that this one is to write.
            writer.garbage_collect_files()
            since = stamp[1] if stamp and stamp[0] == identity else -1
            if not store.removals_from <= since <= generation:
                since = -1
                writer.delete_all_documents()
            gone, came = store.changes(since)
            for document in gone:
                writer.delete_documents_by_term("document", document)
            for document in came:
                _put(writer, store, document)
            writer.delete_documents_by_term("mark", "stamp")
            writer.add_document(
                tantivy.Document(mark="stamp", stamp=f"{identity} {generation} {FORMAT}")
            )
            writer.commit()
            writer.wait_merging_threads()
            self._index.reload()


def _put(writer: tantivy.IndexWriter, store: Store, document: int) -> None:
    """A document's passages in place of those it had, each under the document's title too."""
    writer.delete_documents_by_term("document", document)
    described = store.document(document)
    title = described.title if described else ""
    for first, last, text in passages(store.all_sentences(document)):
        # Line by line: in most of them all is ASCII, which goes three times as fast.
        said = " ".join(chain.from_iterable(map(split_words, (title, *text.splitlines()))))
        writer.add_document(tantivy.Document(document=document, first=first, last=last, text=said))


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("document", indexed=True, fast=True)
    builder.add_integer_field("first", fast=True)
    builder.add_integer_field("last", fast=True)
    builder.add_text_field("text", tokenizer_name=_ANALYSER, index_option="freq")
    builder.add_text_field("mark", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("stamp", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


SEARCH_FOLDER = "search"


def current_search_index(
    store: Store, folder: Path | None, search: SearchIndex | None, *, rebuild: bool = False
) -> SearchIndex:
    """
    A search index that agrees with the store.

    One that is behind is brought up; one that is missing or damaged is built anew, and so is any
    with `rebuild`. Where another process is writing, an index that is merely behind is used as it
    is; where the folder may not be written, one is built in memory.
    """
    wanted = (store.identity, store.generation)
    if search is not None and not rebuild and search.stamp() == wanted:
        return search
    if folder is None:
        return _followed(search if search and not rebuild else SearchIndex.in_memory(), store)
    search = None if rebuild else SearchIndex.open(folder / SEARCH_FOLDER)
    stamp = search.stamp() if search is not None else None
    if search is not None and stamp == wanted:
        return search
    try:
        with writing(folder):
            return follow(store, folder, search, rebuild=rebuild)
    except BusyError:
        if search is not None and stamp is not None and stamp[0] == wanted[0]:
            return search
    except CorpusError:
        pass  # no room, or no permission
    return _followed(SearchIndex.in_memory(), store)


def follow(
    store: Store, folder: Path, search: SearchIndex | None = None, *, rebuild: bool = False
) -> SearchIndex:
    """
    Bring the folder's index up, or build it anew; wants the writer lock.

    One that refuses to be brought up is built anew too.
    """
    search = search or SearchIndex.open(folder / SEARCH_FOLDER)
    usable = not rebuild and search is not None and search.stamp() is not None
    try:
        if search is None or not usable:
            search = SearchIndex.create(folder / SEARCH_FOLDER)
        search.follow(store)
    except CorpusError:
        if not usable:
            raise
        search = SearchIndex.create(folder / SEARCH_FOLDER)
        search.follow(store)
    store.forget_removals(store.generation)
    return search


def _followed(search: SearchIndex, store: Store) -> SearchIndex:
    search.follow(store)
    return search
