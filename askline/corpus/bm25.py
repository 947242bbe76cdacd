"""
BM25 over texts in memory, with the stemming that the search index uses.

It scores the sentences inside passages, and the passages of texts that a server returned.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

import tantivy

from ..text.words import split_identifiers

__all__ = [
    "Stemmer",
    "bm25_scores",
    "inverse_document_frequency",
    "stem_texts",
    "stem_words",
]

# The constants of tantivy, so that the score of a sentence and of its passage can be added.
_K1, _B = 1.2, 0.75
_MAX_WORD_BYTES = 100  # longer strings are data; tantivy refuses words of more than 65,530 bytes


class Stemmer:
    """
    Removes accents and word endings, in the same way for every language.

    The endings are the English ones: on French questions (PIAF) they did as well as French ones.
    """

    def __init__(self) -> None:
        self.analyzer = _build_analyzer()
        self.stem: Callable[[str], str] = lru_cache(2**16)(self._stem)
        """The index term of a word; empty if the index leaves the word out."""

    def terms(self, text: str) -> list[str]:
        """The distinct index terms of a text, in the order of their first occurrence."""
        stems = (self.stem(word) for word in split_identifiers(text))
        return list(dict.fromkeys(stem for stem in stems if stem))

    def _stem(self, word: str) -> str:
        terms = self.analyzer.analyze(word)
        return terms[0] if terms else ""


def _build_analyzer() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    for step in (
        tantivy.Filter.remove_long(_MAX_WORD_BYTES),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("English"),
    ):
        builder = builder.filter(step)
    return builder.build()


def stem_texts(texts: Iterable[str], stem: Callable[[str], str]) -> list[list[str]]:
    """The terms of each text; a word that the index leaves out becomes an empty term."""
    return stem_words([split_identifiers(text) for text in texts], stem)


def stem_words(words: Sequence[Sequence[str]], stem: Callable[[str], str]) -> list[list[str]]:
    """The terms of each list of words."""
    stems = {word: stem(word) for word in set(chain.from_iterable(words))}
    return [[stems[word] for word in text_words] for text_words in words]


def bm25_scores(texts: Sequence[Sequence[str]], weights: Mapping[str, float]) -> list[float]:
    """The BM25 score of each text, given as terms, for terms with the weights `weights`."""
    average_length = max(1.0, sum(map(len, texts)) / max(1, len(texts)))
    scores = []
    for terms in texts:
        norm = _K1 * (1 - _B + _B * len(terms) / average_length)
        score = 0.0
        for term, count in Counter(term for term in terms if term in weights).items():
            score += weights[term] * count * (_K1 + 1) / (count + norm)
        scores.append(score)
    return scores


def inverse_document_frequency(count: int, total: int) -> float:
    """The weight of a term that occurs in `count` of `total` texts; always positive."""
    return math.log1p((total - count + 0.5) / (count + 0.5))
