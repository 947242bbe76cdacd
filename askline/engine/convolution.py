"""
Convolutions over words and their maximum over positions, in numpy.

A convolution over words by look-up: a hundred times less work than a convolution per text.

Word vectors are frozen, so what each tap of a filter makes of a distinct word is computed once. A
position's value is then a sum of looked-up rows, one a tap, plus what the channels beside the word
add. Texts stand in one row with zero words between them, and the zero word's taps are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .numpy_ops import FloatArray, IntArray, matmul, segment_reduce

__all__ = [
    "ConvolutionLookup",
    "pooled_convolution",
    "pooled_convolutions",
]

_WINDOWS_AT_ONCE = 2_048  # bounds memory: five words of 300 numbers each make 12 MB


def pooled_convolution(
    words: FloatArray, lengths: IntArray, weight: FloatArray, bias: FloatArray
) -> FloatArray:
    """One convolution, as `pooled_convolutions` takes several."""
    return pooled_convolutions(words, lengths, [(weight, bias)])


def pooled_convolutions(
    words: FloatArray, lengths: IntArray, filters: Sequence[tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """
    (texts, longest, inputs) → (texts, filters of all), each text's own positions alone.

    Weights are (filters, inputs, width) as torch keeps them, each with its bias. There is one
    window for each word, with zeros beyond the ends and the greater half before it. Texts stand in
    one line with zeros between them, so that each width is one matrix product over all windows.
    """
    texts, longest, inputs = words.shape
    before = max(weight.shape[2] for weight, _ in filters) // 2
    inside = np.arange(longest) < lengths[:, None]
    starts = np.cumsum(lengths) - lengths
    at = np.arange(len(inside)).repeat(lengths) * before + np.arange(int(lengths.sum()))
    line = np.zeros((len(at) + before * (texts + 1), inputs), np.float32)
    line[at + before] = words[inside]
    values = np.empty((len(at), sum(len(weight) for weight, _ in filters)), np.float32)
    for first in range(0, len(at), _WINDOWS_AT_ONCE):
        some = at[first : first + _WINDOWS_AT_ONCE]
        windows = line[some[:, None] + np.arange(2 * before + 1)]  # (some, greatest width, inputs)
        _convolve(windows, [weight for weight, _ in filters], before, values[first:])
    bias = np.concatenate([bias for _, bias in filters])
    return np.asarray(segment_reduce(np.maximum, values, starts, lengths) + bias, np.float32)


def _convolve(
    windows: FloatArray, weights: Sequence[FloatArray], before: int, out: FloatArray
) -> None:
    """All filters over some windows, side by side into the first rows of `out`."""
    column = 0
    for weight in weights:
        filters, inputs, width = weight.shape
        begin = before - width // 2
        seen = windows.reshape(len(windows), -1)[:, begin * inputs : (begin + width) * inputs]
        taps = weight.transpose(2, 1, 0).reshape(width * inputs, filters)
        np.matmul(seen, taps, out=out[: len(windows), column : column + filters])
        column += filters


_VALUES_AT_ONCE = 2**20  # bounds memory; a block of values stays near


@dataclass(frozen=True, slots=True, eq=False)
class ConvolutionLookup:
    """One convolution's weights, prepared for a table of distinct words."""

    words: FloatArray  # (distinct words * width, filters): a word's taps one after the other
    width: int
    channels: FloatArray  # (width * channels, filters)
    bias: FloatArray  # (filters,)

    @classmethod
    def of(cls, vectors: FloatArray, weight: FloatArray, bias: FloatArray) -> ConvolutionLookup:
        """From (distinct words, dimensions) and a (filters, inputs, width) weight, as torch's."""
        own, (filters, _, width) = vectors.shape[1], weight.shape
        taps = weight[:, :own].transpose(1, 2, 0).reshape(own, width * filters)
        words = matmul(vectors, taps).reshape(-1, filters)
        beside = weight[:, own:].transpose(2, 1, 0).reshape(-1, filters)
        return cls(words, width, np.ascontiguousarray(beside), bias)

    @classmethod
    def of_words(
        cls, vectors: FloatArray, beside: FloatArray, weight: FloatArray, bias: FloatArray
    ) -> ConvolutionLookup:
        """
        For channels that hang on the word alone, (distinct words, channels): there are none left.

        The zero word is put before the others, so word 0 becomes word 1.
        """
        own, (filters, inputs, width) = vectors.shape[1], weight.shape
        taps = weight.transpose(1, 2, 0).reshape(inputs, width * filters)
        words = np.empty((len(vectors) + 1, width * filters), np.float32)
        words[0] = 0.0
        matmul(vectors, taps[:own], out=words[1:])
        words[1:] += matmul(beside, taps[own:])
        return cls(words.reshape(-1, filters), width, np.zeros((0, filters), np.float32), bias)

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
        for some in _blocks(place + lengths, _VALUES_AT_ONCE // len(self.bias)):
            begin = int(place[some][0]) - self.margin
            end = int((place + lengths)[some][-1]) + self.margin
            values = self._values(row[begin:end], beside[begin:end])
            starts = place[some] - begin - self.width // 2
            out[some] = segment_reduce(np.maximum, values, starts, lengths[some])
        return np.asarray(out + self.bias)

    def pooled_beside(self, words: IntArray, channels: FloatArray) -> FloatArray:
        """(pairs, filters) for one text with (pairs, words, channels) that differ by pair."""
        pairs, length, own = channels.shape
        row = np.zeros(length + 2 * self.margin, np.int64)
        row[self.margin : -self.margin] = words
        nothing = np.zeros((len(row), own), np.float32)
        lead = self.margin - self.width // 2
        alone = self._values(row, nothing)[lead : lead + length]  # (words, filters)
        out = np.empty((pairs, alone.shape[1]), np.float32)
        step = max(1, _VALUES_AT_ONCE // len(self.bias) // length)
        for first in range(0, pairs, step):
            windows = _windows(channels[first : first + step], self.width)
            values = windows @ self.channels + alone  # (some pairs, words, filters)
            out[first : first + step] = values.max(axis=1)
        return np.asarray(out + self.bias)

    def _values(self, row: IntArray, channels: FloatArray) -> FloatArray:
        """(positions, filters), but for the first and last that lack half a window."""
        count = len(row) - self.width + 1
        first = row * self.width  # of each word's taps
        out = self.words.take(first[:count], axis=0)
        for tap in range(1, self.width):
            out += self.words.take(first[tap : tap + count] + tap, axis=0)
        if channels.shape[1]:
            windows = _windows(channels[None], self.width)[0]
            out += windows[self.width // 2 :][:count] @ self.channels
        return out


def _blocks(ends: IntArray, positions: int) -> Iterator[slice]:
    """Texts in order by where each ends, so many positions at once, at least one text."""
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + positions, side="right")))
        yield slice(first, last)
        first = last


def _windows(channels: FloatArray, width: int) -> FloatArray:
    """(texts, words, channels) → (texts, words, width * channels): each with its neighbours'."""
    texts, count, own = channels.shape
    padded = np.zeros((texts, count + width - 1, own), np.float32)
    padded[:, width // 2 : width // 2 + count] = channels
    return np.concatenate([padded[:, tap : tap + count] for tap in range(width)], axis=2)
