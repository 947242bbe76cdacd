"""
Words as the search index knows them.

BM25 over texts that are at hand: sentences inside passages, passages inside documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

import tantivy

from ..text.words import split_words

__all__ = [
    "Stemmer",
    "bm25",
    "inverse_document_frequency",
    "standard",
    "stem_texts",
]

_WORD_BYTES = 100  # longer ones are no words but data; tantivy refuses those beyond 65,530


class Stemmer:
    """
    Words with their accents and endings off, the same for every language.

    English endings: on French questions (PIAF) they did as well as French ones.
    """

    def __init__(self) -> None:
        self.analyser = _analyser()
        self.stem: Callable[[str], str] = lru_cache(2**16)(self._stem)
        """A word as the index knows it; empty for what it leaves out."""

    def terms(self, text: str) -> list[str]:
        """The different terms of a text, as the index knows them, in order."""
        stems = (self.stem(word) for word in split_words(text))
        return list(dict.fromkeys(stem for stem in stems if stem))

    def _stem(self, word: str) -> str:
        found = self.analyser.analyze(word)
        return found[0] if found else ""


def _analyser() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    for step in (
        tantivy.Filter.remove_long(_WORD_BYTES),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("English"),
    ):
        builder = builder.filter(step)
    return builder.build()


_K1, _B = 1.2, 0.75  # tantivy's, so that a sentence's score and its passage's can be added


def stem_texts(texts: Iterable[str], stem: Callable[[str], str]) -> list[list[str]]:
    """The terms of each text, with those that the index leaves out as empty ones."""
    said = [split_words(text) for text in texts]
    stems = {word: stem(word) for word in set(chain.from_iterable(said))}
    return [[stems[word] for word in own] for own in said]


def bm25(said: Sequence[Sequence[str]], weights: Mapping[str, float]) -> list[float]:
    """How much of the weighted terms each text says, against the average length of the texts."""
    average = max(1.0, sum(map(len, said)) / max(1, len(said)))
    scores = []
    for own in said:
        norm = _K1 * (1 - _B + _B * len(own) / average)
        score = 0.0
        for term, count in Counter(term for term in own if term in weights).items():
            score += weights[term] * count * (_K1 + 1) / (count + norm)
        scores.append(score)
    return scores


def inverse_document_frequency(count: int, total: int) -> float:
    """The inverse document frequency of a term that `count` of `total` texts have."""
    return math.log1p((total - count + 0.5) / (count + 0.5))


def standard(scores: Sequence[float]) -> list[float] | None:
    """How many standard deviations above the mean; None where that cannot be said."""
    if not scores or not all(map(math.isfinite, scores)):
        return None
    mean = math.fsum(scores) / len(scores)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    return [(score - mean) / (deviation or 1.0) for score in scores]
