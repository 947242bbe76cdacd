"""
Retrieval by phrases: the sentences that contain the phrases nearest to a question.

`PhraseRetriever` searches phrases alone; `HybridRetriever` combines it with the search by words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from .schema import SentenceRecord

__all__ = [
    "PHRASE_WEIGHT",
    "HybridRetriever",
    "MergedPhraseRetriever",
    "PhraseRetriever",
    "PhraseSearch",
]

_PHRASES_PER_SENTENCE = 3
"""Phrases searched per requested sentence: several near phrases can be in one sentence."""
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
        return _first_of_each(map(self.sentence_finder(), hits), k)

    def nearest_phrases(self, question: str, count: int) -> list[PhraseHit]:
        """At most `count` phrases, nearest first."""
        return self._index.search(self._model.encode_question(question), count)

    def sentence_finder(self) -> Callable[[PhraseHit], RetrievedSentence | None]:
        """A function from a phrase to its sentence, None if it is left out; reads passages once."""
        passages: dict[str, list[SentenceRecord]] = {}

        def find(hit: PhraseHit) -> RetrievedSentence | None:
            passage_id = PassageId.parse(hit.document)
            if hit.document not in passages:
                passages[hit.document] = self._store.unchecked_sentences(*passage_id)
            sentence, phrase = _locate(hit, passages[hit.document])
            if sentence is None or not sentence.is_candidate:
                return None
            header = self._store.document(passage_id.document_id)
            if header is None:  # removed in the meantime
                return None
            result = to_retrieved_sentence(
                self._store,
                passage_id.document_id,
                header,
                sentence,
                hit.score,
                (passage_id.first, passage_id.last),
            )
            return replace(result, phrase=phrase)

        return find

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
        finders = [shard.sentence_finder() for shard in self._shards]
        hits = [
            (hit, find)
            for shard, find in zip(self._shards, finders, strict=True)
            for hit in shard.nearest_phrases(question, count)
        ]
        hits = sorted(hits, key=lambda each: -each[0].score)[:count]
        return _first_of_each((find(hit) for hit, find in hits), k)

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

    def passage(self, sentence: RetrievedSentence) -> list[DocumentSentence]:
        """The sentences of the passage of a sentence, in their order."""
        return self._words.passage(sentence)

    def __len__(self) -> int:
        return len(self._words)

    def __str__(self) -> str:
        return f"({self._words} + {self._phrases})"


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
