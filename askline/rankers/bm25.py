"""`bm25` over the candidate list, which is the collection that document frequencies come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import ClassVar

import numpy as np

from ..errors import InputError
from ..text.words import words
from .algebra import ScoringRanker
from .sorting import FloatArray

__all__ = ["BM25"]


@dataclass(frozen=True)
class BM25(ScoringRanker):
    """
    Lucene's form, idf = log(1 + (n - df + 0.5) / (df + 0.5)), which is never negative.

    A word asked twice counts twice. Scores depend on the whole list: do not cache them by pair.
    """

    name: ClassVar[str] = "bm25"

    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        if not self.k1 >= 0:
            raise InputError(f"k1 must be at least 0, got {self.k1}.")
        if not 0 <= self.b <= 1:
            raise InputError(f"b must be between 0 and 1, got {self.b}.")

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """The sum over the question's words of idf times the saturated count."""
        asked = words(question)
        said = [words(candidate) for candidate in candidates]
        counts = _counts(list(dict.fromkeys(asked)), said)  # (candidates, distinct asked words)
        lengths = np.array([len(own) for own in said], float)
        in_how_many = (counts > 0).sum(axis=0)
        idf = np.log1p((len(said) - in_how_many + 0.5) / (in_how_many + 0.5))
        times_asked = _counts(list(dict.fromkeys(asked)), [asked])[0]
        norm = self.k1 * (1 - self.b + self.b * lengths / max(lengths.mean(), 1.0))
        saturated = np.divide(
            counts, counts + norm[:, None], out=np.zeros_like(counts), where=counts > 0
        )
        return np.asarray(saturated @ (idf * times_asked))


def _counts(vocabulary: Sequence[str], texts: Sequence[Sequence[str]]) -> FloatArray:
    """How often each word of the vocabulary stands in each text: (texts, vocabulary)."""
    column = {word: number for number, word in enumerate(vocabulary)}
    lengths = [len(text) for text in texts]
    found = np.fromiter(
        map(column.get, chain.from_iterable(texts), repeat(-1)), np.int64, sum(lengths)
    )
    row = np.repeat(np.arange(len(texts)), lengths)
    cells = (row * len(vocabulary) + found)[found >= 0]
    flat = np.bincount(cells, minlength=len(texts) * len(vocabulary))
    return flat.reshape(len(texts), len(vocabulary)).astype(np.float64)
