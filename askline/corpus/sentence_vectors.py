"""
How similar sentences are to a question by word vectors that were trained for it.

The vector of a text is the sum of those of its words. They were trained so that the sentence that
answers a question is nearer to it than others (`python -m research.recipes.sentence_vectors`), the
length of a word's vector being its weight. Nothing is stored in the index: sums are computed for
the few hundred sentences that the search finds.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ..models.word_vectors import WordVectors
from .text_match import SplitTexts

__all__ = ["SentenceVectors", "cosines", "load_sentence_vectors"]

FILE = "sentence_vectors.safetensors"


@cache
def load_sentence_vectors() -> SentenceVectors:
    """The vectors that ship with askline, loaded once per process."""
    return SentenceVectors(WordVectors.load(str(files("askline.models") / "shipped" / FILE)))


class SentenceVectors:
    """Sums of word vectors. Words without a vector count nothing."""

    def __init__(self, table: WordVectors) -> None:
        self._table = table

    def sums(self, texts: SplitTexts) -> NDArray[np.float32]:
        """The vector of each text, (texts, dimensions)."""
        found = np.zeros((len(texts.lengths), self._table.dimensions), np.float32)
        filled = np.flatnonzero(texts.lengths)
        if len(filled):
            used, tokens = np.unique(texts.tokens, return_inverse=True)
            vectors = self._table.of([texts.words[at] for at in used.tolist()])
            starts = (np.cumsum(texts.lengths) - texts.lengths)[filled]
            found[filled] = np.add.reduceat(vectors[tokens], starts, axis=0)
        return found


def cosines(vectors: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
    """The cosine of each row with a vector; 0 for a row or a vector of zeros."""
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector)
    return np.asarray(vectors @ vector / np.maximum(lengths, 1e-9), np.float64)
