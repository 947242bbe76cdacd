"""Retrieval by phrases: the sentences that the nearest phrases to a question stand in."""

from __future__ import annotations

from dataclasses import replace

from ..phrases import PhraseHit, PhraseIndex, PhraseModel
from .answers import Found, Phrase
from .encoded import PassageName
from .retrieval import LONGEST, EmbeddedRetriever, as_found, neighbours
from .rows import SentenceRow
from .scoring import standard
from .store import Store

__all__ = ["WEIGHT", "JoinedRetriever", "PhraseRetriever"]

_PHRASES_A_SENTENCE = 3
"""Looked for, for each sentence asked for: a sentence has several phrases that are near."""
WEIGHT = 1.0
"""
Weight of the phrase search's standard scores relative to those of the word search
(research/results/phrase_fusion.json).
"""


class PhraseRetriever:
    """
    The nearest phrases' sentences, each with its nearest phrase.

    A phrase that reaches into the next sentence is none, and neither is one of a heading.
    """

    def __init__(self, store: Store, index: PhraseIndex, model: PhraseModel) -> None:
        self._store, self._index, self._model = store, index, model

    def retrieve(self, question: str, k: int) -> list[Found]:
        """At most `k` sentences, best first."""
        hits = self._index.search(self._model.question(question), _PHRASES_A_SENTENCE * k)
        found: dict[tuple[int, int], Found] = {}
        rows: dict[str, list[SentenceRow]] = {}
        for hit in hits:
            if len(found) == k:
                break
            place = PassageName.read(hit.document)
            if hit.document not in rows:
                rows[hit.document] = self._store.sentences(*place)
            row, phrase = _located(hit, rows[hit.document])
            if row is None or (place.document, row.ordinal) in found or row.is_heading:
                continue
            described = self._store.document(place.document)
            if described is not None:  # it was not removed in between
                said = as_found(self._store, place.document, described, row, hit.score)
                found[place.document, row.ordinal] = replace(said, phrase=phrase)
        return list(found.values())

    def neighbours(self, found: Found) -> tuple[str, str]:
        """The sentence before and the sentence after; empty where there is none."""
        return neighbours(self._store, found)

    def __len__(self) -> int:
        return self._store.counts()[1]

    def __str__(self) -> str:
        return "phrases"


class JoinedRetriever:
    """Sentences found by their words and by their phrases, by the sum of their standard scores."""

    def __init__(
        self, words: EmbeddedRetriever, phrases: PhraseRetriever, weight: float = WEIGHT
    ) -> None:
        self._words, self._phrases = words, phrases
        self._weight = weight

    def retrieve(self, question: str, k: int) -> list[Found]:
        """At most `k` sentences; what one of the two did not find has its lowest score there."""
        words, near = self._words.retrieve(question, k), self._phrases.retrieve(question, k)
        if not words or not near:
            return words or near
        by_words, by_phrases = ({_place(one): one for one in found} for found in (words, near))
        places = list({**by_words, **by_phrases})
        lowest = words[-1], near[-1]
        first = standard([by_words.get(place, lowest[0]).score for place in places])
        second = standard([by_phrases.get(place, lowest[1]).score for place in places])
        if first is None or second is None:
            return words
        joined = [
            replace(by_phrases.get(place) or by_words[place], score=one + self._weight * other)
            for place, one, other in zip(places, first, second, strict=True)
        ]
        return sorted(joined, key=lambda found: -found.score)[:k]

    def neighbours(self, found: Found) -> tuple[str, str]:
        """The sentence before and the sentence after; empty where there is none."""
        return self._words.neighbours(found)

    def __len__(self) -> int:
        return len(self._words)

    def __str__(self) -> str:
        return f"({self._words} + {self._phrases})"


def _place(found: Found) -> tuple[str, int]:
    return found.document, found.ordinal


def _located(
    hit: PhraseHit, rows: list[SentenceRow]
) -> tuple[SentenceRow, Phrase] | tuple[None, None]:
    """The sentence that holds a phrase of its passage, and the phrase as a place in it."""
    start = len(rows[0].heading) + 1 if rows else 0  # the passage begins with its heading
    for row in rows:
        end = start + len(row.text[:LONGEST])
        if start <= hit.start and hit.end <= end:
            return row, Phrase(hit.text, hit.start - start, hit.end - start)
        start = end + 1
    return None, None
