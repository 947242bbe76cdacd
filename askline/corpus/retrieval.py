"""
Retrieval: from a question to the sentences worth ranking.

`Retriever` is what `ask` wants of it; the corpus brings its own, and a search engine that people
already run fits behind the same three methods. Knowing the neighbors of a sentence is optional.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast, runtime_checkable

from .bm25 import bm25, stem_texts
from .results import RetrievedSentence, Unit
from .schema import DocumentHeader, SentenceRecord
from .search_index import PassageHit, SearchIndex
from .store import Store

__all__ = ["HasNeighbors", "LexicalRetriever", "Retriever"]

_PASSAGES_A_SENTENCE = 0.5
"""Looked through for each sentence asked for; for a hundred, fifty found as many as a hundred."""
MAX_SENTENCE_CHARACTERS = 4_000
"""Characters of a sentence that are looked at: a longer one is data without full stops."""


@runtime_checkable
class Retriever(Protocol):
    """Finds sentences for a question."""

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences, best first; none where nothing matches."""
        ...

    def __len__(self) -> int:
        """How many sentences it chooses from."""
        ...

    def __str__(self) -> str:
        """The name by which reports call it."""
        ...


@runtime_checkable
class HasNeighbors(Protocol):
    """A retriever that can say what stands around a sentence."""

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        """The sentence before and the sentence after; empty where there is none."""
        ...


class _Candidate(NamedTuple):
    hit: PassageHit
    row: SentenceRecord
    score: float


class LexicalRetriever:
    """
    BM25 over passages, then over the sentences in them.

    A sentence scores what its passage does plus what it does alone, both with the corpus's inverse
    document frequencies. Headings lend their words to the passages below them and are no answers,
    and neither is what says nothing but words of the question.
    """

    def __init__(self, store: Store, search: SearchIndex) -> None:
        self._store = store
        self._search = search

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences, best first; none where no word of the question is known."""
        weights = self._search.weights(self._search.terms(question))
        hits = self._search.search(list(weights), max(10, round(k * _PASSAGES_A_SENTENCE)))
        inside = [
            (hit, row)
            for hit in hits
            for row in self._store.sentences(hit.document, hit.first, hit.last)
            if not row.is_heading
        ]
        said = stem_texts(
            (row.text[:MAX_SENTENCE_CHARACTERS] for _, row in inside), self._search.stem
        )
        candidates = [
            _Candidate(hit, row, hit.score + score)
            for (hit, row), own, score in zip(inside, said, bm25(said, weights), strict=True)
            if not weights.keys() >= set(own)
        ]
        best = sorted(candidates, key=lambda candidate: -candidate.score)[:k]
        return self._found(best)

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        """The sentence before and the sentence after; empty where there is none."""
        return neighbors(self._store, found)

    def __len__(self) -> int:
        return self._store.counts()[1]

    def __str__(self) -> str:
        return "passages"

    def _found(self, candidates: Sequence[_Candidate]) -> list[RetrievedSentence]:
        """Candidates with the names of their documents, without those removed in between."""
        numbers = {candidate.hit.document for candidate in candidates}
        documents = {number: self._store.document(number) for number in numbers}
        return [
            retrieved_sentence(self._store, hit.document, document, row, score)
            for hit, row, score in candidates
            if (document := documents[hit.document]) is not None
        ]


def retrieved_sentence(
    store: Store, number: int, document: DocumentHeader, row: SentenceRecord, score: float
) -> RetrievedSentence:
    """A sentence of the store, as retrieval gives it."""
    has_rows = document.kind in ("csv", "jsonl")
    record = store.record(number, row.first) if has_rows else None
    return RetrievedSentence(
        document=document.name,
        ordinal=row.ordinal,
        text=row.text,
        start=row.first,
        end=row.last,
        unit=cast(Unit, document.unit),
        number=row.place,
        heading=row.heading,
        title=document.title,
        score=score,
        row=record.row if record else None,
        record=record.id if record else "",
    )


def neighbors(store: Store, found: RetrievedSentence) -> tuple[str, str]:
    """The sentence before and the sentence after; empty at the ends of a document or a row."""
    number = store.number(found.document)
    if number is None:
        return "", ""
    around = store.sentences(number, found.ordinal - 1, found.ordinal + 1)
    if found.row is not None:
        record = store.record(number, found.start)
        around = [row for row in around if store.record(number, row.first) == record]
    texts = {row.ordinal: row.text for row in around}
    return texts.get(found.ordinal - 1, ""), texts.get(found.ordinal + 1, "")
