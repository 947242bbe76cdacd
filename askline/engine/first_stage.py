"""The first-stage filter without torch, over all candidates of a question at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..models.light_config import COVERAGE_SCALE, LONGEST, FilterLayout
from .convolution import Taps
from .lexical_features import features
from .numpy_ops import FloatArray, IntArray, folded, product, weighted_sum
from .word_matches import Listing, Matches

__all__ = [
    "FilterNetwork",
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
class FilterNetwork:
    """The weights, with torch's names and shapes."""

    layout: FilterLayout
    tensors: Mapping[str, FloatArray]

    def scores(self, listing: Listing) -> FloatArray:
        """One number a candidate; it depends on the other candidates, not on their order."""
        take = self.tensors
        np.empty(_KEPT_FREE, np.uint8)  # comes and goes, untouched
        matches = Matches.of(listing)
        said, (direct, texts) = _both(
            lambda: self._candidates(listing, matches),  # (candidates, filters)
            lambda: (features(listing, matches), _texts(listing)),
            at_once=len(listing.row) >= _WORTH_A_THREAD,
        )
        direct = (direct - take["features.mean"]) / take["features.scale"]
        asked = self._question(listing)  # (filters,)
        seen = [direct, self._coverages(listing, matches), asked * said, asked - said]
        hidden = product(np.concatenate(seen, axis=1), take["hidden.weight"].T)
        hidden = np.maximum(hidden + take["hidden.bias"], 0.0)
        scores = product(hidden, take["score.weight"][0]) + take["score.bias"]
        scores += product(direct, take["direct.weight"][0]) + take["direct.bias"]
        return np.asarray(scores + self._second_look(texts, scores))

    def _second_look(self, texts: FloatArray, scores: FloatArray) -> FloatArray:
        """
        How near each candidate is to what the best ones say, the more the longer the list.

        An answer that says "he" or "the show" meets few of the question's words, but shares its
        subject with sentences that meet them.
        """
        trust = np.exp(_SHARPNESS * (scores - scores.max()))
        subject = weighted_sum(trust, texts)
        near = product(texts, subject / max(float(np.linalg.norm(subject)), 1e-6))
        return np.asarray(self.layout.feedback * np.log(len(scores)) * near, np.float32)

    def _coverages(self, listing: Listing, matches: Matches) -> FloatArray:
        """(candidates, coverages): the question's words that a candidate meets, weighed."""
        take, asked = self.tensors, listing.asked
        beside = np.stack([matches.rarity, matches.scarcity], axis=1)
        words = np.concatenate([listing.vectors[:asked], beside], axis=1)
        hidden = np.tanh(_convolved(words, take["terms.weight"]) + take["terms.bias"])
        raw = hidden @ take["weights.weight"].T + take["weights.bias"]
        weights = np.logaddexp(raw, 0.0)  # softplus, (asked, coverages)
        weights = weights / (weights.sum(axis=0) + 1e-3)
        squared = matches.best**2
        exact = (matches.counts > 0).astype(np.float32)
        met = [product(*pair) for pair in zip((squared, squared**2, exact), weights.T, strict=True)]
        return np.asarray(np.stack(met, axis=1) * COVERAGE_SCALE, np.float32)

    def _question(self, listing: Listing) -> FloatArray:
        take, asked = self.tensors, listing.asked
        words = np.concatenate([listing.vectors[:asked], listing.rarity[:asked, None]], axis=1)
        values = _convolved(words, take["question.weight"])
        return np.asarray(values.max(axis=0) + take["question.bias"], np.float32)

    def _candidates(self, listing: Listing, matches: Matches) -> FloatArray:
        # The channels hang on the word alone here, so they are part of its taps.
        exact = np.zeros(len(listing.distinct), np.float32)
        exact[: listing.asked] = [word != "" for word in listing.distinct[: listing.asked]]
        channels = (matches.related.max(axis=0), exact, listing.rarity, exact * listing.rarity)
        weight, bias = self.tensors["candidate.weight"], self.tensors["candidate.bias"]
        taps = Taps.of_words(listing.vectors, np.stack(channels, axis=1), weight, bias)
        row, lengths = _beginnings(listing)
        return taps.pooled(row + 1, np.zeros((len(row), 0), np.float32), lengths)


def _beginnings(listing: Listing) -> tuple[IntArray, IntArray]:
    """The words of each candidate up to `LONGEST`, and how many they are."""
    if listing.lengths.max() <= LONGEST:
        return listing.row, listing.lengths
    place = np.arange(len(listing.row)) - listing.starts[listing.owner]
    return listing.row[place < LONGEST], np.minimum(listing.lengths, LONGEST)


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


def _texts(listing: Listing) -> FloatArray:
    """(candidates, leading components): what each says, by its rare words, at length 1."""
    words = listing.vectors[:, :_LEADING] * listing.rarity[:, None] ** 2
    texts = folded(np.add, words, listing.starts, listing.lengths, words=listing.row)
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
