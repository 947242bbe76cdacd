"""
Retrieval by phrases: the sentences that contain the phrases nearest to a question.

`PhraseRetriever` searches phrases alone; `HybridRetriever` combines it with the search by words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ..phrases import EncodedQuestion, PhraseHit, PhraseModel
from .document_store import DocumentReader
from .passages import MAX_SENTENCE_CHARACTERS, passage_heading
from .phrase_index_sync import PassageId
from .results import AnswerPhrase, DocumentSentence, RetrievedSentence
from .retrieval import (
    LexicalRetriever,
    StoreRetriever,
    standard_scores,
    to_retrieved_sentence,
)
from .schema import DocumentHeader, SentenceRecord

__all__ = [
    "PHRASE_WEIGHT",
    "HybridRetriever",
    "MergedPhraseRetriever",
    "PhraseRetriever",
    "PhraseSearch",
]

_PHRASES_PER_SENTENCE = 3
"""Phrases searched per requested sentence: several near phrases can be in one sentence."""
_HITS_READ_TOGETHER = 100
PHRASE_WEIGHT = 1.0
"""
Weight of the phrase search's standard scores relative to those of the word search
(research/results/phrase_fusion.json).
"""


class PhraseSearch(Protocol):
    """Phrases by their vectors: a `PhraseIndex`, or the phrases in a database."""

    def search(self, question: EncodedQuestion, k: int) -> list[PhraseHit]:
        """At most `k` phrases, nearest first; a document is named as a `PassageId`."""
        ...


class PhraseRetriever(StoreRetriever):
    """
    The sentences of the nearest phrases, each with its nearest phrase.

    Phrases that cross the end of a sentence, and phrases in headings and code, are left out.
    """

    def __init__(self, store: DocumentReader, index: PhraseSearch, model: PhraseModel) -> None:
        super().__init__(store)
        self._index, self._model = index, model

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences, best first."""
        hits = self.nearest_phrases(question, _PHRASES_PER_SENTENCE * k)
        return _first_of_each(_find_sentences([(hit, self._store) for hit in hits]), k)

    def nearest_phrases(self, question: str, count: int) -> list[PhraseHit]:
        """At most `count` phrases, nearest first."""
        return self._index.search(self._model.encode_question(question), count)

    def __str__(self) -> str:
        return "phrases"


class MergedPhraseRetriever(StoreRetriever):
    """The phrase retrievers of several shards as one. The scores of one model are comparable."""

    def __init__(self, store: DocumentReader, shards: Sequence[PhraseRetriever]) -> None:
        super().__init__(store)
        self._shards = shards

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences of all shards, best first."""
        count = _PHRASES_PER_SENTENCE * k
        hits = [
            (hit, shard._store)
            for shard in self._shards
            for hit in shard.nearest_phrases(question, count)
        ]
        hits = sorted(hits, key=lambda each: -each[0].score)[:count]
        return _first_of_each(_find_sentences(hits), k)

    def __str__(self) -> str:
        return "phrases"


class HybridRetriever:
    """Sentences found by words and by phrases, sorted by the sum of their standard scores."""

    def __init__(
        self,
        words: LexicalRetriever,
        phrases: PhraseRetriever | MergedPhraseRetriever,
        weight: float = PHRASE_WEIGHT,
    ) -> None:
        self._words, self._phrases = words, phrases
        self._weight = weight

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """
        At most `k` sentences, best first.

        A sentence that only one of the two found gets the lowest score of the other.
        """
        words = self._words.retrieve(question, k)
        phrases = self._phrases.retrieve(question, k)
        if not words or not phrases:
            return words or phrases
        by_words, by_phrases = ({_key(one): one for one in found} for found in (words, phrases))
        keys = list({**by_words, **by_phrases})
        word_scores = standard_scores([by_words.get(key, words[-1]).score for key in keys])
        phrase_scores = standard_scores([by_phrases.get(key, phrases[-1]).score for key in keys])
        if word_scores is None or phrase_scores is None:
            return words
        combined = [
            replace(
                by_phrases.get(key) or by_words[key],
                score=word_score + self._weight * phrase_score,
            )
            for key, word_score, phrase_score in zip(keys, word_scores, phrase_scores, strict=True)
        ]
        return sorted(combined, key=lambda sentence: -sentence.score)[:k]

    def neighbors(self, sentence: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        """At most `count` sentences before and after, joined by spaces; empty if there is none."""
        return self._words.neighbors(sentence, count)

    def corrected(self, question: str) -> str:
        """The question with misspelled words corrected."""
        return self._words.corrected(question)

    def passage(self, sentence: RetrievedSentence) -> list[DocumentSentence]:
        """The sentences of the passage of a sentence, in their order."""
        return self._words.passage(sentence)

    def __len__(self) -> int:
        return len(self._words)

    def __str__(self) -> str:
        return f"({self._words} + {self._phrases})"


def _find_sentences(
    hits: Sequence[tuple[PhraseHit, DocumentReader]],
) -> Iterator[RetrievedSentence | None]:
    """
    The sentence of each phrase of a store; None if it is left out or was removed meanwhile.

    The passages of some phrases are read together, which matters if the store is a server. Those of
    later phrases are read if more sentences are wanted.
    """
    passages: dict[tuple[int, PassageId], list[SentenceRecord]] = {}
    headers: dict[tuple[int, int], DocumentHeader] = {}
    for first in range(0, len(hits), _HITS_READ_TOGETHER):
        part = [
            (hit, PassageId.parse(hit.document), store)
            for hit, store in hits[first : first + _HITS_READ_TOGETHER]
        ]
        for store in {id(store): store for _, _, store in part}.values():
            places = dict.fromkeys(place for _, place, own in part if own is store)
            new = [place for place in places if (id(store), place) not in passages]
            for place, sentences in zip(new, store.passage_sentences(new), strict=True):
                passages[id(store), place] = sentences
            found = store.documents({place.document_id for place in new})
            headers |= {(id(store), number): header for number, header in found.items()}
        for hit, place, store in part:
            sentence, phrase = _locate(hit, passages[id(store), place])
            header = headers.get((id(store), place.document_id))
            if sentence is None or not sentence.is_candidate or header is None:
                yield None
                continue
            bounds = place.first, place.last
            result = to_retrieved_sentence(
                store, place.document_id, header, sentence, hit.score, bounds
            )
            yield replace(result, phrase=phrase)


def _first_of_each(found: Iterable[RetrievedSentence | None], k: int) -> list[RetrievedSentence]:
    """The first `k` different sentences, each as it was found first."""
    kept: dict[tuple[str, int], RetrievedSentence] = {}
    for sentence in found:
        if sentence is not None:
            kept.setdefault(_key(sentence), sentence)
            if len(kept) == k:
                break
    return list(kept.values())


def _key(sentence: RetrievedSentence) -> tuple[str, int]:
    return sentence.document, sentence.ordinal


def _locate(
    hit: PhraseHit, sentences: list[SentenceRecord]
) -> tuple[SentenceRecord, AnswerPhrase] | tuple[None, None]:
    """The sentence of a passage that contains a phrase, and the phrase's place in it."""
    start = len(passage_heading(sentences[0])) + 1 if sentences else 0
    for sentence in sentences:
        end = start + len(sentence.text[:MAX_SENTENCE_CHARACTERS])
        if start <= hit.start and hit.end <= end:
            phrase = sentence.text[hit.start - start : hit.end - start]
            return sentence, AnswerPhrase(phrase, hit.start - start, hit.end - start)
        start = end + 1
    return None, None
