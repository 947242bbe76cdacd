"""
How well many texts match a question: BM25, the soft match of word vectors, and sums of vectors.

All texts are split at once and every distinct word is looked up once. The rest is arithmetic on
arrays, which makes a thousand sentences as cheap as a hundred in a loop.

The sums are of word vectors that were trained so that the sentence that answers a question is
nearer to it than others (`python -m research.recipes.sentence_vectors`), the length of a word's
vector being its weight. Nothing of them is stored in the index: they are computed for the few
hundred sentences that the search finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ..models.word_vectors import WordVectors
from ..text.words import TEXT_SEPARATOR, identifier_words_flat, split_words_flat
from .bm25 import bm25_of_counts
from .question_terms import QuestionTerms
from .similar_words import SimilarWords

__all__ = [
    "SentenceVectors",
    "SplitTexts",
    "TextMatches",
    "cosines",
    "load_sentence_vectors",
    "match_texts",
]


@dataclass(frozen=True)
class SplitTexts:
    """The words of texts, identifiers by parts and whole included, as numbers."""

    words: list[str]
    """Every distinct word."""
    tokens: NDArray[np.int64]
    """The positions in `words` of the words of all texts, text by text."""
    lengths: NDArray[np.int64]
    """The number of words of each text."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> SplitTexts:
        """Split all texts."""
        flat = split_words_flat(texts)
        identifiers = identifier_words_flat(texts)
        words = dict.fromkeys([TEXT_SEPARATOR])
        words.update(dict.fromkeys(flat))
        words.update((word, None) for _, word in identifiers)
        rows = dict(zip(words, count()))
        tokens = np.fromiter(map(rows.__getitem__, flat), np.int64, len(flat))
        texts_of = np.cumsum(tokens == 0)
        is_word = tokens != 0
        tokens, texts_of = tokens[is_word], texts_of[is_word]
        if identifiers:
            added = np.fromiter((rows[word] for _, word in identifiers), np.int64)
            added_to = np.fromiter((text for text, _ in identifiers), np.int64)
            tokens, texts_of = np.append(tokens, added), np.append(texts_of, added_to)
            order = np.argsort(texts_of, kind="stable")
            tokens, texts_of = tokens[order], texts_of[order]
        return cls(list(rows), tokens, np.bincount(texts_of, minlength=len(texts)))

    def take(self, positions: NDArray[np.int64]) -> SplitTexts:
        """The texts at these positions, in this order."""
        starts, lengths = np.cumsum(self.lengths) - self.lengths, self.lengths[positions]
        first = np.cumsum(lengths) - lengths
        places = np.repeat(starts[positions] - first, lengths) + np.arange(lengths.sum())
        return SplitTexts(self.words, self.tokens[places], lengths)

    @property
    def texts_of_tokens(self) -> NDArray[np.int64]:
        """The position of the text of each token."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


@dataclass(frozen=True)
class TextMatches:
    """What texts have in common with a question."""

    terms: QuestionTerms
    counts: NDArray[np.int64]
    """How often each weighted term is in each text, (texts, terms)."""
    cosines: NDArray[np.float32] | None
    """The best cosine of each question word with a word of the text, (texts, question words)."""
    lengths: NDArray[np.int64]
    repeats: NDArray[np.bool_]
    """Whether a text has nothing but words of the question."""
    split: SplitTexts
    """The texts without contexts."""

    def under(self, contexts: TextMatches, positions: NDArray[np.int64]) -> TextMatches:
        """The matches of texts with the words of a context added, `positions` names each one's."""
        cosines = self.cosines
        if cosines is not None and contexts.cosines is not None:
            cosines = np.maximum(cosines, contexts.cosines[positions])
        return TextMatches(
            self.terms,
            self.counts + contexts.counts[positions],
            cosines,
            self.lengths + contexts.lengths[positions],
            self.repeats & contexts.repeats[positions],
            self.split,
        )

    def scores(self, soft_match: float) -> NDArray[np.float64]:
        """BM25 plus `soft_match` times the weighted sum of cosines, (texts,)."""
        return self.bm25() + soft_match * self.soft()

    def bm25(self) -> NDArray[np.float64]:
        """The BM25 score of each text."""
        weights = np.fromiter(self.terms.weights.values(), np.float64)
        return bm25_of_counts(self.counts, self.lengths, weights)

    def soft(self) -> NDArray[np.float64]:
        """The sum of the cosines of each text, each weighted by its question word; 0 without."""
        if self.cosines is None:
            return np.zeros(len(self.lengths))
        word_weights = np.fromiter(self.terms.words.values(), np.float64)
        return np.asarray((self.cosines * word_weights).sum(axis=1))


def match_texts(
    texts: Sequence[str],
    terms: QuestionTerms,
    stem: Callable[[str], str],
    similar: SimilarWords | None,
) -> TextMatches:
    """Match texts with the terms of a question; without `similar`, there is no soft match."""
    split = SplitTexts.of(texts)
    stems = list(map(stem, split.words))
    numbers = {term: number for number, term in enumerate(terms.weights)}
    term_of_word = np.fromiter((numbers.get(each, -1) for each in stems), np.int64)
    term_of_token, text_of_token = term_of_word[split.tokens], split.texts_of_tokens
    known = term_of_token >= 0
    cells = text_of_token[known] * len(numbers) + term_of_token[known]
    counts = np.bincount(cells, minlength=len(texts) * len(numbers))
    is_own = np.fromiter((each in terms.own for each in stems), np.bool_)
    others = np.bincount(text_of_token[~is_own[split.tokens]], minlength=len(texts))
    return TextMatches(
        terms,
        counts.reshape(len(texts), len(numbers)),
        None if similar is None else _best_cosines(split, list(terms.words), similar),
        split.lengths,
        others == 0,
        split,
    )


def _best_cosines(
    split: SplitTexts, words: Sequence[str], similar: SimilarWords
) -> NDArray[np.float32]:
    """The best cosine of each word with the words of each text, (texts, words)."""
    cosines = similar.cosines(words, split.words)  # (words, distinct words)
    best = np.zeros((len(split.lengths), len(words)), np.float32)
    filled = np.flatnonzero(split.lengths)
    starts = (np.cumsum(split.lengths) - split.lengths)[filled]
    if len(filled):
        for number, own in enumerate(cosines):
            best[filled, number] = np.maximum.reduceat(own[split.tokens], starts)
    return best


@cache
def load_sentence_vectors() -> SentenceVectors:
    """The vectors that ship with askline, loaded once per process."""
    path = files("askline.models") / "shipped" / "sentence_vectors.safetensors"
    return SentenceVectors(WordVectors.load(str(path)))


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
