"""
A convolution over words by look-up: a hundred times less work than a convolution per text.

Word vectors are frozen, so what each tap of a filter makes of a distinct word is computed once. A
position's value is then a sum of looked-up rows, one a tap, plus what the channels beside the word
add. Texts stand in one row with zero words between them, and the zero word's taps are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..models.channels import FloatArray, IntArray

__all__ = ["Taps", "blocks"]

_POSITIONS_AT_ONCE = 2_048  # a block of values stays in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """One convolution's weights, prepared for a table of distinct words."""

    words: FloatArray  # (distinct words * width, filters): a word's taps one after the other
    width: int
    channels: FloatArray  # (width * channels, filters)
    bias: FloatArray  # (filters,)

    @classmethod
    def of(cls, vectors: FloatArray, weight: FloatArray, bias: FloatArray) -> Taps:
        """From (distinct words, dimensions) and a (filters, inputs, width) weight, as torch's."""
        own, (filters, _, width) = vectors.shape[1], weight.shape
        taps = weight[:, :own].transpose(1, 2, 0).reshape(own, width * filters)
        words = (vectors @ taps).reshape(-1, filters)
        beside = weight[:, own:].transpose(2, 1, 0).reshape(-1, filters)
        return cls(words, width, np.ascontiguousarray(beside), bias)

    @property
    def margin(self) -> int:
        """How many zero words must stand before and behind a text."""
        return max(1, self.width // 2)

    def pooled(self, words: IntArray, channels: FloatArray, lengths: IntArray) -> FloatArray:
        """
        (texts, filters): the maximum over each text's positions.

        `words` holds the texts one after the other, `lengths` how many words each has, at least
        one; `channels` is (words, channels).
        """
        place = np.cumsum(lengths + self.margin) - lengths  # of each text's first word, spaced out
        at = np.repeat(place - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(words))
        size = int(lengths.sum()) + self.margin * (len(lengths) + 1)
        row = np.zeros(size, np.int64)
        beside = np.zeros((size, channels.shape[1]), np.float32)
        row[at], beside[at] = words, channels
        out = np.empty((len(lengths), self.words.shape[1]), np.float32)
        for some in blocks(place + lengths):
            edges = np.stack([place[some], place[some] + lengths[some]], axis=1)
            begin, end = edges[0, 0] - self.margin, edges[-1, 1] + self.margin
            values = self._values(row[begin:end], beside[begin:end])
            out[some] = np.maximum.reduceat(values, (edges - begin).ravel(), axis=0)[::2]
        return np.asarray(out + self.bias)

    def pooled_beside(self, words: IntArray, channels: FloatArray) -> FloatArray:
        """(pairs, filters) for one text with (pairs, words, channels) that differ by pair."""
        pairs, length, own = channels.shape
        row = np.zeros(length + 2 * self.margin, np.int64)
        row[self.margin : -self.margin] = words
        nothing = np.zeros((len(row), own), np.float32)
        alone = self._values(row, nothing)[self.margin : -self.margin]  # (words, filters)
        out = np.empty((pairs, alone.shape[1]), np.float32)
        step = max(1, _POSITIONS_AT_ONCE // length)
        for first in range(0, pairs, step):
            windows = _windows(channels[first : first + step], self.width)
            values = windows @ self.channels + alone  # (some pairs, words, filters)
            out[first : first + step] = values.max(axis=1)
        return np.asarray(out + self.bias)

    def _values(self, row: IntArray, channels: FloatArray) -> FloatArray:
        """(positions, filters), right for those that have the margin on both sides."""
        count = len(row)
        out = _windows(channels[None], self.width)[0] @ self.channels
        first = row * self.width  # of each word's taps
        for tap in range(self.width):
            shift = tap - self.width // 2
            here = slice(max(0, -shift), min(count, count - shift))
            there = slice(max(0, shift), min(count, count + shift))
            out[here] += self.words.take(first[there] + tap, axis=0)
        return np.asarray(out)


def blocks(ends: IntArray) -> Iterator[slice]:
    """Texts in order by where each ends, as many at once as stay in the cache, at least one."""
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        fits = int(np.searchsorted(ends, before + _POSITIONS_AT_ONCE, side="right"))
        last = max(first + 1, fits)
        yield slice(first, last)
        first = last


def _windows(channels: FloatArray, width: int) -> FloatArray:
    """(texts, words, channels) → (texts, words, width * channels): each with its neighbours'."""
    texts, count, own = channels.shape
    padded = np.zeros((texts, count + width - 1, own), np.float32)
    padded[:, width // 2 : width // 2 + count] = channels
    return np.concatenate([padded[:, tap : tap + count] for tap in range(width)], axis=2)
