"""
The direct features of the shipped first stage: what a good lexical ranker would look at.

Each is about 0 to 1. Words count by the square of their rarity, so that "the" counts for nothing.
`feedback` looks at what the most promising candidates have in common, as relevance feedback does:
a sentence about the same thing as they are, without the question's own words, is lifted.
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

_Different = tuple[IntArray, IntArray]

_K1, _B = 1.5, 0.75
_SHARPNESS = 12.0  # how much better than the rest a candidate must look to speak for the list


def feature_matrix(listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
    """(candidates, features)."""
    exact = (matches.counts > 0).astype(np.float32)
    squared = matches.best**2
    general = matches.rarity**2
    local = (0.3 + matches.scarcity) * general
    covered_here = matmul(squared, _share(local))
    bm25 = _bm25(listing, matches)
    different = _different(listing)
    weight = listing.rarity**2  # (distinct,)
    related = matches.related.max(axis=0) ** 2 * weight
    mass = _sums(related, listing)
    weights = _sums(weight, listing) + np.float32(1e-3) * listing.lengths.astype(np.float32)
    centroid = _unit(general @ listing.vectors[: listing.question_size])
    columns: list[NDArray[np.floating[Any]]] = [
        matmul(squared, _share(general)),
        covered_here,
        matmul(exact, _share(local)),
        bm25,
        _jaccard(listing, exact, different),
        _pairs(listing),
        np.log1p(listing.lengths) / 4,
        mass / weights,
        mass / 5,
        _sums(matmul(listing.vectors, centroid) * weight, listing) / weights,
        *_heaviest(matches.best, local),
        *_feedback(listing, different, covered_here + 0.5 * bm25, weight, weights),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _share(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / max(float(weights.sum()), 1e-6), np.float32)


def _unit(vector: NDArray[np.floating[Any]]) -> FloatArray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-6), np.float32)


def _sums(of_words: FloatArray, listing: TokenizedList) -> FloatArray:
    """(candidates,): what the words of each add up to."""
    return np.asarray(np.add.reduceat(of_words[listing.words], listing.starts), np.float32)


def _bm25(listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
    mean = max(float(listing.lengths.mean()), 1.0)
    norm = _K1 * (1 - _B + _B * listing.lengths / mean)
    saturated = matches.counts / (matches.counts + norm[:, None])
    return matmul(saturated.astype(np.float32), _share(matches.scarcity * matches.rarity))


def _jaccard(listing: TokenizedList, exact: FloatArray, different: _Different) -> FloatArray:
    shared = exact.sum(axis=1)
    own = np.bincount(different[0], minlength=len(listing.lengths))
    return np.asarray(shared / (listing.question_size + own - shared))


def _different(listing: TokenizedList) -> _Different:
    """Each word of each candidate once: whose it is, and which."""
    cells = _each_once(listing.owner * len(listing.distinct) + listing.words)
    owner, word = np.divmod(cells, len(listing.distinct))
    return owner, word


def _each_once(cells: IntArray) -> IntArray:
    """As np.unique, whose hashing takes several times as long as a sort at these sizes."""
    cells = np.sort(cells)
    first = np.ones(len(cells), bool)
    np.not_equal(cells[1:], cells[:-1], out=first[1:])
    return cells[first]


def _pairs(listing: TokenizedList) -> FloatArray:
    """The share of the question's neighbouring words that stand side by side in the candidate."""
    size, asked = len(listing.lengths), listing.question_size
    if len(listing.question) < 2:
        return np.zeros(size, np.float32)
    neighbours = listing.question[:-1] * asked + listing.question[1:]
    weights = (listing.rarity[listing.question[:-1]] + listing.rarity[listing.question[1:]]) ** 2
    worth = np.zeros(asked * asked, np.float32)
    np.maximum.at(worth, neighbours, weights)
    here, next_ = listing.words[:-1], listing.words[1:]
    both = np.flatnonzero(
        (here < asked) & (next_ < asked) & (listing.owner[:-1] == listing.owner[1:])
    )
    found = _each_once(listing.owner[both] * asked * asked + here[both] * asked + next_[both])
    sums = np.bincount(found // (asked * asked), worth[found % (asked * asked)], minlength=size)
    return np.asarray(sums / max(float(worth.sum()), 1e-6))


def _heaviest(best: FloatArray, weights: FloatArray) -> list[FloatArray]:
    """How well the three weightiest question words are met; 1 where there are fewer."""
    order = np.argsort(-weights, kind="stable")[:3]
    columns = [best[:, place] for place in order]
    return columns + [np.ones(len(best), np.float32)] * (3 - len(columns))


def _feedback(
    listing: TokenizedList,
    different: _Different,
    promise: FloatArray,
    weight: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Words and direction that a candidate shares with the most promising ones."""
    size, distinct = len(listing.lengths), len(listing.distinct)
    trust = np.exp(_SHARPNESS * (promise - promise.max()))
    trust /= trust.sum()
    owner, word = different
    having = np.bincount(word, minlength=distinct)
    scarcity = np.log((size + 1) / np.maximum(having, 1)) / np.log(size + 2)
    spoken = np.bincount(word, trust[owner], minlength=distinct) * scarcity**2 * weight
    sums = np.bincount(owner, spoken[word], minlength=size)
    shared = sums / np.sqrt(np.bincount(owner, minlength=size) + 5)
    said = np.bincount(listing.words, (trust / listing.lengths)[listing.owner], minlength=distinct)
    direction = _unit(weighted_sum((said * weight).astype(np.float32), listing.vectors))
    towards = _sums(matmul(listing.vectors, direction) * weight, listing) / weights
    top = max(float(shared.max()), 1e-9)
    return np.asarray(shared / top, np.float32), np.asarray(towards, np.float32)
