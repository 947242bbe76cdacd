"""
BM25 over texts in memory, with the stemming that the search index uses.

It scores the sentences inside passages, and the passages of texts that a server returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import TYPE_CHECKING

import tantivy

from ..text.words import split_identifiers

if TYPE_CHECKING:  # indexing needs the stemmer, and no numpy
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "K1",
    "B",
    "Stemmer",
    "bm25_of_counts",
    "bm25_scores",
    "inverse_document_frequency",
    "stem_texts",
]

# The constants of tantivy, so that the score of a sentence and of its passage can be added.
K1, B = 1.2, 0.75
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
    words = [split_identifiers(text) for text in texts]
    stems = {word: stem(word) for word in set(chain.from_iterable(words))}
    return [[stems[word] for word in text_words] for text_words in words]


def bm25_scores(texts: Sequence[Sequence[str]], weights: Mapping[str, float]) -> list[float]:
    """The BM25 score of each text, given as terms, for terms with the weights `weights`."""
    import numpy as np

    counts = np.zeros((len(texts), len(weights)), np.int64)
    numbers = dict(zip(weights, count()))
    for row, terms in zip(counts, texts, strict=True):
        for term in terms:
            if term in numbers:
                row[numbers[term]] += 1
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    scores = bm25_of_counts(counts, lengths, np.fromiter(weights.values(), np.float64))
    return [float(score) for score in scores]


def bm25_of_counts(
    counts: NDArray[np.int64], lengths: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The BM25 score of each text from its term counts, (texts, terms), and its length in words."""
    import numpy as np

    average_length = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
    norms = K1 * (1 - B + B * lengths / average_length)
    parts = weights * counts * (K1 + 1) / (counts + norms[:, None])
    return np.asarray(parts.sum(axis=1))


def inverse_document_frequency(count: int, total: int) -> float:
    """The weight of a term that occurs in `count` of `total` texts; always positive."""
    return math.log1p((total - count + 0.5) / (count + 0.5))
