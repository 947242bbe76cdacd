"""
Rankers without weights: `bm25`, `jaccard`, `wo`, `wo+rr`, `idf-overlap`, `rr`, `random`.

Many candidates share the same number of words with a question, so the rule for ties matters as much
as the words: on the WikiQA test set it moves MAP by 13 points. In `wo` the rule is therefore an
option, and part of the score: a fraction below one is added to the count.
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
from .base import Ranker
from .requests import ScoreArray

__all__ = [
    "BM25",
    "IdfOverlap",
    "Jaccard",
    "OriginalOrder",
    "RandomOrder",
    "TieRule",
    "WordOverlap",
    "WordOverlapThenOrder",
]

TieRule = Literal["original", "random", "reversed"]


@dataclass(frozen=True)
class BM25(Ranker):
    """
    BM25 with the list of texts as its collection.

    Lucene's form: idf = log(1 + (n - df + 0.5) / (df + 0.5)), which is never negative. A word that
    occurs twice in the question counts twice. Scores depend on the whole list.
    """

    name: ClassVar[str] = "bm25"

    k1: float = 1.5
    """How much repetitions of a word count; with 0, they do not."""
    b: float = 0.75
    """How much long texts are discounted, from 0 to 1."""

    def __post_init__(self) -> None:
        if not self.k1 >= 0:
            raise InputError(f"k1 must be at least 0, got {self.k1}.")
        if not 0 <= self.b <= 1:
            raise InputError(f"b must be between 0 and 1, got {self.b}.")

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """The sum over the question's words of idf times the saturated term frequency."""
        query = split_words(question)
        tokenized = [split_words(text) for text in texts]
        vocabulary = list(dict.fromkeys(query))
        frequencies = _count_words(vocabulary, tokenized)  # (texts, distinct question words)
        lengths = np.array([len(own) for own in tokenized], float)
        document_frequency = (frequencies > 0).sum(axis=0)
        idf = np.log1p((len(texts) - document_frequency + 0.5) / (document_frequency + 0.5))
        query_frequency = _count_words(vocabulary, [query])[0]
        norm = self.k1 * (1 - self.b + self.b * lengths / max(lengths.mean(), 1.0))
        saturated = np.divide(
            frequencies,
            frequencies + norm[:, None],
            out=np.zeros_like(frequencies),
            where=frequencies > 0,
        )
        return np.asarray(saturated @ (idf * query_frequency))


@dataclass(frozen=True)
class Jaccard(Ranker):
    """Shared distinct words over all distinct words of the pair: 0 to 1."""

    name: ClassVar[str] = "jaccard"

    @property
    def listwise(self) -> bool:
        return False

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """|intersection| / |union|; two texts without words score 0."""
        query = set(split_words(question))
        vocabularies = [set(split_words(text)) for text in texts]
        shared = np.array([len(query & own) for own in vocabularies], float)
        sizes = np.array([len(own) for own in vocabularies], float)
        union = len(query) + sizes - shared
        return np.asarray(shared / np.maximum(union, 1.0))


@dataclass(frozen=True)
class WordOverlap(Ranker):
    """The number of shared distinct words. Ties are broken at random unless `ties` says else."""

    name: ClassVar[str] = "wo"

    ties: TieRule = "random"
    """The order of texts that share as many words: `random`, or the original order."""
    seed: int = 0
    """The seed of the random order."""

    def __post_init__(self) -> None:
        if self.ties not in get_args(TieRule):
            raise UnknownNameError("tie rule", str(self.ties), get_args(TieRule))

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """The number of shared words, plus a fraction below one for the tie rule."""
        shared = np.array([len(own) for own in _shared_words(question, texts)], float)
        if self.ties == "random":
            return shared + _uniform_scores(question, len(texts), self.seed)
        if self.ties == "reversed":
            return np.asarray(shared + np.arange(len(texts)) / len(texts))
        return shared


@dataclass(frozen=True)
class WordOverlapThenOrder(Ranker):
    """The number of shared distinct words; of two texts that share as many, the earlier one."""

    name: ClassVar[str] = "wo+rr"

    @property
    def listwise(self) -> bool:
        return False

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """The number alone: equal scores keep the original order."""
        return np.array([len(own) for own in _shared_words(question, texts)], float)


@dataclass(frozen=True)
class IdfOverlap(Ranker):
    """The shared words, each weighted by how few texts of the list have it."""

    name: ClassVar[str] = "idf-overlap"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """The sum of log((n + 1) / (df + 0.5)) over the shared words, for n texts."""
        shared = _shared_words(question, texts)
        document_frequency: dict[str, int] = {}
        for own in shared:
            for word in own:
                document_frequency[word] = document_frequency.get(word, 0) + 1
        total = len(texts) + 1
        idf = {word: float(np.log(total / (df + 0.5))) for word, df in document_frequency.items()}
        # Summed in a fixed order, because the order of a set differs between processes.
        return np.array([sum(idf[word] for word in sorted(own)) for own in shared], float)


@dataclass(frozen=True)
class OriginalOrder(Ranker):
    """The order given. A strong baseline on documents, where answers often stand early."""

    name: ClassVar[str] = "rr"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:  # noqa: ARG002
        """The reciprocal rank: 1, 1/2, 1/3, …"""
        return np.asarray(1.0 / np.arange(1, len(texts) + 1))


@dataclass(frozen=True)
class RandomOrder(Ranker):
    """A random order. The same seed and question always give the same one."""

    name: ClassVar[str] = "random"

    seed: int = 0
    """The seed of the order."""

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """Uniform numbers in [0, 1)."""
        return _uniform_scores(question, len(texts), self.seed)


def _shared_words(question: str, texts: Sequence[str]) -> list[set[str]]:
    """For each text, the distinct words that it shares with the question."""
    query = set(split_words(question))
    return [query.intersection(split_words(text)) for text in texts]


def _count_words(vocabulary: Sequence[str], texts: Sequence[Sequence[str]]) -> ScoreArray:
    """How often each word of the vocabulary occurs in each text: (texts, vocabulary)."""
    column = {word: number for number, word in enumerate(vocabulary)}
    lengths = [len(text) for text in texts]
    found = np.fromiter(
        map(column.get, chain.from_iterable(texts), repeat(-1)), np.int64, sum(lengths)
    )
    row = np.repeat(np.arange(len(texts)), lengths)
    cells = (row * len(vocabulary) + found)[found >= 0]
    flat = np.bincount(cells, minlength=len(texts) * len(vocabulary))
    return flat.reshape(len(texts), len(vocabulary)).astype(np.float64)


def _uniform_scores(question: str, count: int, seed: int) -> ScoreArray:
    """Numbers in [0, 1) that depend on the question and the seed, not on any earlier call."""
    # crc32 and not hash(), which differs between processes.
    question_key = zlib.crc32(question.encode("utf-8", "surrogatepass"))
    return np.random.default_rng([seed % 2**64, question_key]).random(count)
