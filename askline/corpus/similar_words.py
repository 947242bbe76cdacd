"""
Similar words by the word vectors that ship with askline: derivations, and a soft match of texts.

A question says `founder` where the document says `founded`, or `film` where it says `movie`. Both
are found by their vectors, at question time and without any change of the index
(figures: research/notes/corpus.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

from ..models.word_vectors import WordVectors

__all__ = ["SimilarWord", "SimilarWords", "load_similar_words"]

SimilarWord = tuple[str, float]
"""A word, and the cosine between its vector and that of the word in question."""

_ROWS_PER_PRODUCT = 1_000
"""BLAS computes larger products with several threads, which wait for each other on a busy CPU."""
_MIN_DERIVED_COSINE = 0.4
"""Without it, `number` would be derived from `numb`."""
_MIN_MATCH_COSINE = 0.4
_MIN_BASE_LETTERS = 3
_SUFFIXES = tuple(
    """ation ations ition ment ments ence ance ency ancy ical able ible ness ally ists ions ers ors
    ing ion ure ive ous ity ist ism ian sis tic er or ed es al ic ly s e y""".split()
)


@cache
def load_similar_words() -> SimilarWords:
    """The similar words of the shipped vectors, loaded once per process."""
    return SimilarWords(WordVectors.load())


class SimilarWords:
    """Similar words of a table of vectors. Several threads may use it."""

    def __init__(self, vectors: WordVectors) -> None:
        self._vectors = vectors
        self.derived = lru_cache(2**12)(self._derived)
        """Words with the same base and another ending whose vectors are not far, nearest first."""

    def __contains__(self, word: str) -> bool:
        """Whether a word has a vector."""
        return word in self._vectors.row_of

    def cosines(self, words: Sequence[str], others: Sequence[str]) -> NDArray[np.float32]:
        """
        The cosine of each word with each of `others`, (words, others); 0 where it is below 0.4.

        A word has the cosine 1 with itself, whether it has a vector or not.
        """
        vectors = self._unit_vectors(others)
        found = np.zeros((len(words), len(others)), np.float32)
        rows = dict(zip(others, count()))
        for row, word in zip(found, words, strict=True):
            row[:] = _products(vectors, self._unit_vectors([word])[0])
            row[row < _MIN_MATCH_COSINE] = 0.0
            if word in rows:
                row[rows[word]] = 1.0
        return found

    def _derived(self, word: str) -> list[SimilarWord]:
        known = self._vectors.row_of
        if word not in known:
            return []
        forms = {base + suffix for base in _bases(word) for suffix in (*_SUFFIXES, "")}
        forms = {form for form in forms if form in known} - {word}
        if not forms:
            return []
        ordered = sorted(forms)
        cosines = _products(self._unit_vectors(ordered), self._unit_vectors([word])[0])
        pairs = zip(ordered, cosines.tolist(), strict=True)
        kept = [(form, cosine) for form, cosine in pairs if cosine >= _MIN_DERIVED_COSINE]
        return sorted(kept, key=lambda pair: -pair[1])

    def _unit_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of length 1, (words, dimensions); zero for words without a vector."""
        rows = np.fromiter(map(self._vectors.row_of.get, words, repeat(-1)), np.int64)
        vectors = self._vectors.rows[rows].astype(np.float32)  # scales do not matter for cosines
        vectors[rows < 0] = 0.0
        return _to_unit_length(vectors)


def _products(vectors: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The dot product of each row with a vector."""
    steps = range(0, len(vectors), _ROWS_PER_PRODUCT)
    parts = [vectors[at : at + _ROWS_PER_PRODUCT] @ vector for at in steps]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _to_unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors /= np.maximum(lengths, 1e-9)[:, None]
    return vectors


def _bases(word: str) -> set[str]:
    """What may be left of a word without its ending, with the letters that an ending changes."""
    bases = {word}
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_BASE_LETTERS:
            bases.add(word[: -len(suffix)])
    for base in tuple(bases):
        if base.endswith("i"):
            bases.add(base[:-1] + "y")
        if base.endswith("e"):
            bases.add(base[:-1])
        if base.endswith("t"):
            bases.add(base + "e")
        if len(base) > _MIN_BASE_LETTERS + 1 and base[-1] == base[-2]:
            bases.add(base[:-1])
    return bases
