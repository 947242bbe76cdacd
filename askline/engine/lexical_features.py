"""
The lexical features of the shipped first stage, as a strong lexical ranker would use them.

Each feature is about 0 to 1. Words are weighted by the square of their rarity, so that "the" counts
for nothing. The feedback features are pseudo-relevance feedback: they compare a candidate with what
the most promising candidates have in common, and so raise sentences about the same subject that
lack the question's own words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lexical_matches import LexicalMatches, TokenizedList
from .numpy_ops import FloatArray, IntArray, matmul, weighted_sum

__all__ = [
    "feature_matrix",
]

_BM25_K1, _BM25_B = 1.5, 0.75
_FEEDBACK_SHARPNESS = 12.0  # of the softmax over promising candidates

_WordSets = tuple[IntArray, IntArray]
"""Each distinct word of each candidate: the candidates' numbers and the words."""


def feature_matrix(listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
    """(candidates, features), with the columns of `models.light_config.FEATURES`."""
    exact = (matches.counts > 0).astype(np.float32)
    squared = matches.best**2
    general = matches.rarity**2
    local = (0.3 + matches.scarcity) * general
    covered_here = matmul(squared, _normalized(local))
    bm25 = _bm25(listing, matches)
    word_sets = _word_sets(listing)
    weight = listing.rarity**2  # (distinct,)
    related = matches.related.max(axis=0) ** 2 * weight
    mass = _sums(related, listing)
    weights = _sums(weight, listing) + np.float32(1e-3) * listing.lengths.astype(np.float32)
    centroid = _unit(general @ listing.vectors[: listing.question_size])
    columns: list[NDArray[np.floating[Any]]] = [
        matmul(squared, _normalized(general)),
        covered_here,
        matmul(exact, _normalized(local)),
        bm25,
        _jaccard(listing, exact, word_sets),
        _bigrams(listing),
        np.log1p(listing.lengths) / 4,
        mass / weights,
        mass / 5,
        _sums(matmul(listing.vectors, centroid) * weight, listing) / weights,
        *_heaviest_words(matches.best, local),
        *_feedback(listing, word_sets, covered_here + 0.5 * bm25, weight, weights),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _normalized(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / max(float(weights.sum()), 1e-6), np.float32)


def _unit(vector: NDArray[np.floating[Any]]) -> FloatArray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-6), np.float32)


def _sums(values: FloatArray, listing: TokenizedList) -> FloatArray:
    """Sum the (distinct,) values over the words of each candidate: (candidates,)."""
    return np.asarray(np.add.reduceat(values[listing.words], listing.starts), np.float32)


def _bm25(listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
    mean = max(float(listing.lengths.mean()), 1.0)
    norm = _BM25_K1 * (1 - _BM25_B + _BM25_B * listing.lengths / mean)
    saturated = matches.counts / (matches.counts + norm[:, None])
    return matmul(saturated.astype(np.float32), _normalized(matches.scarcity * matches.rarity))


def _jaccard(listing: TokenizedList, exact: FloatArray, word_sets: _WordSets) -> FloatArray:
    shared = exact.sum(axis=1)
    own = np.bincount(word_sets[0], minlength=len(listing.lengths))
    return np.asarray(shared / (listing.question_size + own - shared))


def _word_sets(listing: TokenizedList) -> _WordSets:
    cells = _unique(listing.owner * len(listing.distinct) + listing.words)
    owner, word = np.divmod(cells, len(listing.distinct))
    return owner, word


def _unique(cells: IntArray) -> IntArray:
    """As np.unique, whose hashing takes several times as long as sorting at these sizes."""
    cells = np.sort(cells)
    first = np.ones(len(cells), bool)
    np.not_equal(cells[1:], cells[:-1], out=first[1:])
    return cells[first]


def _bigrams(listing: TokenizedList) -> FloatArray:
    """The weighted share of the question's bigrams that the candidate has."""
    candidates, size = len(listing.lengths), listing.question_size
    if len(listing.question) < 2:
        return np.zeros(candidates, np.float32)
    bigrams = listing.question[:-1] * size + listing.question[1:]
    rarity = listing.rarity[listing.question]
    weights = np.zeros(size * size, np.float32)
    np.maximum.at(weights, bigrams, (rarity[:-1] + rarity[1:]) ** 2)
    left, right = listing.words[:-1], listing.words[1:]
    matching = np.flatnonzero(
        (left < size) & (right < size) & (listing.owner[:-1] == listing.owner[1:])
    )
    found = _unique(listing.owner[matching] * size * size + left[matching] * size + right[matching])
    sums = np.bincount(found // (size * size), weights[found % (size * size)], minlength=candidates)
    return np.asarray(sums / max(float(weights.sum()), 1e-6))


def _heaviest_words(best: FloatArray, weights: FloatArray) -> list[FloatArray]:
    """How well the three question words of greatest weight match; 1 if there are fewer."""
    order = np.argsort(-weights, kind="stable")[:3]
    columns = [best[:, place] for place in order]
    return columns + [np.ones(len(best), np.float32)] * (3 - len(columns))


def _feedback(
    listing: TokenizedList,
    word_sets: _WordSets,
    promise: FloatArray,
    weight: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The words and the direction that a candidate shares with the most promising ones."""
    candidates, distinct = len(listing.lengths), len(listing.distinct)
    trust = np.exp(_FEEDBACK_SHARPNESS * (promise - promise.max()))
    trust /= trust.sum()
    owner, word = word_sets
    having = np.bincount(word, minlength=distinct)
    scarcity = np.log((candidates + 1) / np.maximum(having, 1)) / np.log(candidates + 2)
    word_trust = np.bincount(word, trust[owner], minlength=distinct) * scarcity**2 * weight
    sums = np.bincount(owner, word_trust[word], minlength=candidates)
    shared = sums / np.sqrt(np.bincount(owner, minlength=candidates) + 5)
    frequency = np.bincount(
        listing.words, (trust / listing.lengths)[listing.owner], minlength=distinct
    )
    direction = _unit(weighted_sum((frequency * weight).astype(np.float32), listing.vectors))
    towards = _sums(matmul(listing.vectors, direction) * weight, listing) / weights
    top = max(float(shared.max()), 1e-9)
    return np.asarray(shared / top, np.float32), np.asarray(towards, np.float32)
