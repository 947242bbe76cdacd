"""
`bm25` over the candidate list, which is the collection that document frequencies come from.

`jaccard`: shared distinct words over all distinct words of the pair.

`random`: what guessing is worth. The same seed and question always give the same order.

`wo`, `wo+rr` and `idf-overlap`: how many of the question's words a candidate has.

Many candidates share the same count, so the rule for ties decides as much as the words do (on the
WikiQA test set it moves MAP by 13 points). It is therefore an option, and part of the score: a
fraction below one is added to the count, and equal scores are left to the original order as
everywhere.

`rr`: the order given. On documents it is a strong baseline: answers stand early.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import ClassVar, Literal, get_args

import numpy as np

from ..errors import InputError, UnknownNameError
from ..text.words import split_words
from .base import FloatArray
from .pipeline import ScoringRanker

__all__ = [
    "BM25",
    "IdfOverlap",
    "Jaccard",
    "OriginalOrder",
    "RandomOrder",
    "TieRule",
    "WordOverlap",
    "WordOverlapThenOrder",
    "shared_words",
    "uniform_scores",
]


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
        asked = split_words(question)
        said = [split_words(candidate) for candidate in candidates]
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


@dataclass(frozen=True)
class Jaccard(ScoringRanker):
    """From 0, nothing in common, to 1, the same words. Two texts without words score 0."""

    name: ClassVar[str] = "jaccard"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """|shared| / |either|, over distinct words."""
        asked = set(split_words(question))
        said = [set(split_words(candidate)) for candidate in candidates]
        shared = np.array([len(asked & own) for own in said], float)
        sizes = np.array([len(own) for own in said], float)
        either = len(asked) + sizes - shared
        return np.asarray(shared / np.maximum(either, 1.0))


def uniform_scores(question: str, count: int, seed: int) -> FloatArray:
    """Numbers in [0, 1) that depend on the question and the seed, not on any earlier call."""
    # crc32, not hash(): the latter differs from one process to the next.
    question_key = zlib.crc32(question.encode("utf-8", "surrogatepass"))
    return np.random.default_rng([seed % 2**64, question_key]).random(count)


@dataclass(frozen=True)
class RandomOrder(ScoringRanker):
    """A fixed shuffle for each question."""

    name: ClassVar[str] = "random"

    seed: int = 0

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """Uniform numbers in [0, 1)."""
        return uniform_scores(question, len(candidates), self.seed)


TieRule = Literal["original", "random", "reversed"]


def shared_words(question: str, candidates: Sequence[str]) -> list[set[str]]:
    """For each candidate the distinct words that it shares with the question."""
    asked = set(split_words(question))
    return [asked.intersection(split_words(candidate)) for candidate in candidates]


@dataclass(frozen=True)
class WordOverlap(ScoringRanker):
    """The count of shared distinct words. Ties are broken at random unless told otherwise."""

    name: ClassVar[str] = "wo"

    ties: TieRule = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.ties not in get_args(TieRule):
            raise UnknownNameError("tie rule", str(self.ties), get_args(TieRule))

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """The count, plus a fraction below one that carries the tie rule."""
        shared = np.array([len(own) for own in shared_words(question, candidates)], float)
        return shared + self._tie_fraction(question, len(candidates))

    def _tie_fraction(self, question: str, count: int) -> FloatArray:
        if self.ties == "random":
            return uniform_scores(question, count, self.seed)
        if self.ties == "reversed":
            return np.asarray(np.arange(count) / count)
        return np.zeros(count)


@dataclass(frozen=True)
class WordOverlapThenOrder(ScoringRanker):
    """The count of shared distinct words; of two that share as many, the earlier one."""

    name: ClassVar[str] = "wo+rr"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """The count alone: the sorter leaves ties in the original order."""
        return WordOverlap(ties="original").score(question, candidates)


@dataclass(frozen=True)
class IdfOverlap(ScoringRanker):
    """The shared words, each worth the more the fewer candidates have it."""

    name: ClassVar[str] = "idf-overlap"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """The sum of log((n + 1) / (df + 0.5)) over the shared words of n candidates."""
        shared = shared_words(question, candidates)
        frequency: dict[str, int] = {}
        for own in shared:
            for word in own:
                frequency[word] = frequency.get(word, 0) + 1
        total = len(candidates) + 1
        worth = {word: float(np.log(total / (df + 0.5))) for word, df in frequency.items()}
        # Summed in a fixed order: sets of strings have none from one process to the next.
        return np.array([sum(worth[word] for word in sorted(own)) for own in shared], float)


@dataclass(frozen=True)
class OriginalOrder(ScoringRanker):
    """Scores are reciprocal ranks: 1, 1/2, 1/3, …"""

    name: ClassVar[str] = "rr"

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:  # noqa: ARG002
        """The reciprocal of each candidate's place."""
        return np.asarray(1.0 / np.arange(1, len(candidates) + 1))
