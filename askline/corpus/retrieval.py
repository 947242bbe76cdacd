"""
Retrieval: from a question to the sentences worth ranking.

`Retriever` is what `ask` wants of it; the corpus brings its own, and a search engine that people
already run fits behind the same three methods. Knowing the neighbours of a sentence is optional.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Protocol, cast, runtime_checkable

from ..text.words import words
from .answers import Found, Unit
from .rows import SENTENCE_KINDS, SentenceRow
from .search import PassageHit, SearchIndex
from .store import Store

__all__ = ["EmbeddedRetriever", "Neighbours", "Retriever"]

_PASSAGES_A_SENTENCE = 0.5
"""Looked through for each sentence asked for; for a hundred, fifty found as many as a hundred."""
_K1, _B = 1.2, 0.75  # tantivy's, so that a sentence's score and its passage's can be added
_HEADING = SENTENCE_KINDS.index("heading")
LONGEST = 4_000
"""Characters of a sentence that are looked at: a longer one is data without full stops."""


@runtime_checkable
class Retriever(Protocol):
    """Finds sentences for a question."""

    def retrieve(self, question: str, k: int) -> list[Found]:
        """At most `k` sentences, best first; none where nothing matches."""
        ...

    def __len__(self) -> int:
        """How many sentences it chooses from."""
        ...

    def __str__(self) -> str:
        """The name by which reports call it."""
        ...


@runtime_checkable
class Neighbours(Protocol):
    """A retriever that can say what stands around a sentence."""

    def neighbours(self, found: Found) -> tuple[str, str]:
        """The sentence before and the sentence after; empty where there is none."""
        ...


class _Candidate(NamedTuple):
    hit: PassageHit
    row: SentenceRow
    score: float


class EmbeddedRetriever:
    """
    BM25 over passages, then over the sentences in them.

    A sentence scores what its passage does plus what it does alone, both with the corpus's inverse
    document frequencies. Headings lend their words to the passages below them and are no answers,
    and neither is what says nothing but words of the question.
    """

    def __init__(self, store: Store, search: SearchIndex) -> None:
        self._store = store
        self._search = search

    def retrieve(self, question: str, k: int) -> list[Found]:
        """At most `k` sentences, best first; none where no word of the question is known."""
        weights = self._search.weights(self._search.terms(question))
        hits = self._search.search(list(weights), max(10, round(k * _PASSAGES_A_SENTENCE)))
        inside = [
            (hit, row)
            for hit in hits
            for row in self._store.sentences(hit.document, hit.first, hit.last)
            if row.kind != _HEADING
        ]
        scores = self._scores([row.text[:LONGEST] for _, row in inside], weights)
        candidates = [
            _Candidate(hit, row, hit.score + score)
            for (hit, row), score in zip(inside, scores, strict=True)
            if score is not None
        ]
        best = sorted(candidates, key=lambda candidate: -candidate.score)[:k]
        return self._found(best)

    def neighbours(self, found: Found) -> tuple[str, str]:
        """The sentence before and the sentence after; empty where there is none."""
        number = self._store.number(found.document)
        if number is None:
            return "", ""
        around = self._store.sentences(number, found.ordinal - 1, found.ordinal + 1)
        texts = {row.ordinal: row.text for row in around}
        return texts.get(found.ordinal - 1, ""), texts.get(found.ordinal + 1, "")

    def __len__(self) -> int:
        return self._store.counts()[1]

    def __str__(self) -> str:
        return "passages"

    def _scores(self, texts: Sequence[str], weights: Mapping[str, float]) -> Iterator[float | None]:
        """BM25 of each text with the weights given; None for one without a word of its own."""
        said = [words(text) for text in texts]
        average = max(1.0, sum(map(len, said)) / max(1, len(said)))
        stems = {word: self._search.stem(word) for word in set(chain.from_iterable(said))}
        asked = {word: stem for word, stem in stems.items() if stem in weights}
        for own in said:
            shared = [asked[word] for word in own if word in asked]
            if len(shared) == len(own):
                yield None
                continue
            norm = _K1 * (1 - _B + _B * len(own) / average)
            score = 0.0
            for term in dict.fromkeys(shared):  # in an order that is the same in every run
                count = shared.count(term)
                score += weights[term] * count * (_K1 + 1) / (count + norm)
            yield score

    def _found(self, candidates: Sequence[_Candidate]) -> list[Found]:
        """Candidates with the names of their documents, without those removed in between."""
        numbers = {candidate.hit.document for candidate in candidates}
        documents = {number: self._store.document(number) for number in numbers}
        return [
            Found(
                document=document[0],
                ordinal=row.ordinal,
                text=row.text,
                start=row.first,
                end=row.last,
                unit=cast(Unit, document[2]),
                number=row.place,
                heading=row.heading,
                title=document[1],
                score=score,
            )
            for hit, row, score in candidates
            if (document := documents[hit.document]) is not None
        ]
