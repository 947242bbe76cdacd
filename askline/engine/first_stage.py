"""The first-stage filter without torch, over all candidates of a question at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..models.light_config import COVERAGE_SCALE, MAX_CANDIDATE_WORDS, FirstStageConfig
from .convolution import ConvolutionLookup
from .lexical_features import feature_matrix
from .lexical_matches import LexicalMatches, TokenizedList
from .numpy_ops import FloatArray, IntArray, matmul, segment_reduce, weighted_sum

__all__ = [
    "FirstStageNetwork",
]

_LEADING = 64  # principal components; all 128 are no better here, and twice the work
_SHARPNESS = 2.0  # of the trust in the best candidates
_WORTH_A_THREAD = 8_000  # words in a list; below, a thread takes longer to start than it saves

_KEPT_FREE = 2**24
"""
Bytes. Linux's C library hands freed memory back to the kernel until it has seen a block as large
as this come and go, and getting the pages back takes up to a quarter of a call.
"""

_One = TypeVar("_One")
_Other = TypeVar("_Other")


@dataclass(frozen=True, slots=True, eq=False)
class FirstStageNetwork:
    """The weights, with torch's names and shapes."""

    config: FirstStageConfig
    tensors: Mapping[str, FloatArray]

    def scores(self, listing: TokenizedList) -> FloatArray:
        """One number a candidate; it depends on the other candidates, not on their order."""
        take = self.tensors
        np.empty(_KEPT_FREE, np.uint8)  # comes and goes, untouched
        matches = LexicalMatches.of(listing)
        said, (direct, texts) = _both(
            lambda: self._candidates(listing, matches),  # (candidates, filters)
            lambda: (feature_matrix(listing, matches), _texts(listing)),
            at_once=len(listing.words) >= _WORTH_A_THREAD,
        )
        direct = (direct - take["features.mean"]) / take["features.scale"]
        asked = self._question(listing)  # (filters,)
        seen = [direct, self._coverages(listing, matches), asked * said, asked - said]
        hidden = matmul(np.concatenate(seen, axis=1), take["hidden.weight"].T)
        hidden = np.maximum(hidden + take["hidden.bias"], 0.0)
        scores = matmul(hidden, take["score.weight"][0]) + take["score.bias"]
        scores += matmul(direct, take["direct.weight"][0]) + take["direct.bias"]
        return np.asarray(scores + self._second_look(texts, scores))

    def _second_look(self, texts: FloatArray, scores: FloatArray) -> FloatArray:
        """
        How near each candidate is to what the best ones say, the more the longer the list.

        An answer that says "he" or "the show" meets few of the question's words, but shares its
        subject with sentences that meet them.
        """
        trust = np.exp(_SHARPNESS * (scores - scores.max()))
        subject = weighted_sum(trust, texts)
        near = matmul(texts, subject / max(float(np.linalg.norm(subject)), 1e-6))
        return np.asarray(self.config.feedback * np.log(len(scores)) * near, np.float32)

    def _coverages(self, listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
        """(candidates, coverages): the question's words that a candidate meets, weighed."""
        take, asked = self.tensors, listing.question_size
        beside = np.stack([matches.rarity, matches.scarcity], axis=1)
        words = np.concatenate([listing.vectors[:asked], beside], axis=1)
        hidden = np.tanh(_convolved(words, take["terms.weight"]) + take["terms.bias"])
        raw = hidden @ take["weights.weight"].T + take["weights.bias"]
        weights = np.logaddexp(raw, 0.0)  # softplus, (asked, coverages)
        weights = weights / (weights.sum(axis=0) + 1e-3)
        squared = matches.best**2
        exact = (matches.counts > 0).astype(np.float32)
        met = [matmul(*pair) for pair in zip((squared, squared**2, exact), weights.T, strict=True)]
        return np.asarray(np.stack(met, axis=1) * COVERAGE_SCALE, np.float32)

    def _question(self, listing: TokenizedList) -> FloatArray:
        take, asked = self.tensors, listing.question_size
        words = np.concatenate([listing.vectors[:asked], listing.rarity[:asked, None]], axis=1)
        values = _convolved(words, take["question.weight"])
        return np.asarray(values.max(axis=0) + take["question.bias"], np.float32)

    def _candidates(self, listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
        # The channels hang on the word alone here, so they are part of its taps.
        exact = np.zeros(len(listing.distinct), np.float32)
        exact[: listing.question_size] = [
            word != "" for word in listing.distinct[: listing.question_size]
        ]
        channels = (matches.related.max(axis=0), exact, listing.rarity, exact * listing.rarity)
        weight, bias = self.tensors["candidate.weight"], self.tensors["candidate.bias"]
        taps = ConvolutionLookup.of_words(listing.vectors, np.stack(channels, axis=1), weight, bias)
        row, lengths = _beginnings(listing)
        return taps.pooled(row + 1, np.zeros((len(row), 0), np.float32), lengths)


def _beginnings(listing: TokenizedList) -> tuple[IntArray, IntArray]:
    """The words of each candidate up to `MAX_CANDIDATE_WORDS`, and how many they are."""
    if listing.lengths.max() <= MAX_CANDIDATE_WORDS:
        return listing.words, listing.lengths
    place = np.arange(len(listing.words)) - listing.starts[listing.owner]
    return listing.words[place < MAX_CANDIDATE_WORDS], np.minimum(
        listing.lengths, MAX_CANDIDATE_WORDS
    )


def _both(
    one: Callable[[], _One], other: Callable[[], _Other], *, at_once: bool
) -> tuple[_One, _Other]:
    """What two functions give; at once on two cores, for numpy lets go of the interpreter."""
    if not at_once:
        return one(), other()
    with ThreadPoolExecutor(1) as aside:
        first = aside.submit(one)
        second = other()
        return first.result(), second


def _texts(listing: TokenizedList) -> FloatArray:
    """(candidates, leading components): what each says, by its rare words, at length 1."""
    words = listing.vectors[:, :_LEADING] * listing.rarity[:, None] ** 2
    texts = segment_reduce(np.add, words, listing.starts, listing.lengths, words=listing.words)
    texts /= np.maximum(np.linalg.norm(texts, axis=1, keepdims=True), 1e-6)
    return texts


def _convolved(words: FloatArray, weight: FloatArray) -> FloatArray:
    """(words, inputs) and (filters, inputs, width) → (words, filters), zeros beyond the ends."""
    count, width = len(words), weight.shape[2]
    padded = np.zeros((count + width - 1, words.shape[1]), np.float32)
    padded[width // 2 : width // 2 + count] = words
    return np.asarray(
        sum(padded[tap : tap + count] @ weight[:, :, tap].T for tap in range(width)), np.float32
    )
