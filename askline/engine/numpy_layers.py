"""
Layers of the light rankers in numpy: convolutions over words, and the list layer over candidates.

`pooled_convolutions` computes max-pooled convolutions directly. `ConvolutionLookup` needs about a
hundredth of the work if the word vectors are frozen: the product of each distinct word's vector
with each tap of a filter (the weights of one position in its window) is computed once, and the
value at a position is a sum of looked-up rows, one per tap, plus what the word's match channels
add. The texts stand in one row, separated by zero words, whose products are zero.

`apply_list_layer` is the recurrent layer over a question's candidates, with torch's weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..models.light_config import ListLayerKind
from .numpy_ops import FloatArray, IntArray, matmul, segment_reduce

__all__ = [
    "ConvolutionLookup",
    "apply_list_layer",
    "list_layer_shapes",
    "pooled_convolution",
    "pooled_convolutions",
]


_WINDOWS_AT_ONCE = 2_048  # bounds memory: windows of five words of 300 numbers take 12 MB
_VALUES_AT_ONCE = 2**20  # bounds memory; such a block of values stays in the cache


def pooled_convolution(
    words: FloatArray, lengths: IntArray, weight: FloatArray, bias: FloatArray
) -> FloatArray:
    """One convolution; see `pooled_convolutions`."""
    return pooled_convolutions(words, lengths, [(weight, bias)])


def pooled_convolutions(
    words: FloatArray, lengths: IntArray, filters: Sequence[tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """
    The maximum over each text's positions: (texts, longest, inputs) → (texts, all filters).

    Each weight is (filters, inputs, width), as in torch, with its bias. There is one window per
    word, padded with zeros beyond the ends of the text; windows of even width have one word more
    before the center. The texts stand in one row with zeros between them, so that each width needs
    one matrix product over all windows.
    """
    texts, longest, inputs = words.shape
    before = max(weight.shape[2] for weight, _ in filters) // 2
    inside = np.arange(longest) < lengths[:, None]
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(len(inside)).repeat(lengths) * before + np.arange(int(lengths.sum()))
    row = np.zeros((len(positions) + before * (texts + 1), inputs), np.float32)
    row[positions + before] = words[inside]
    values = np.empty((len(positions), sum(len(weight) for weight, _ in filters)), np.float32)
    for first in range(0, len(positions), _WINDOWS_AT_ONCE):
        block = positions[first : first + _WINDOWS_AT_ONCE]
        windows = row[block[:, None] + np.arange(2 * before + 1)]  # (block, largest width, inputs)
        _convolve(windows, [weight for weight, _ in filters], before, values[first:])
    bias = np.concatenate([bias for _, bias in filters])
    return np.asarray(segment_reduce(np.maximum, values, starts, lengths) + bias, np.float32)


def _convolve(
    windows: FloatArray, weights: Sequence[FloatArray], before: int, out: FloatArray
) -> None:
    """Apply all filters to some windows; the values go side by side into the rows of `out`."""
    column = 0
    for weight in weights:
        filters, inputs, width = weight.shape
        begin = before - width // 2
        flat = windows.reshape(len(windows), -1)[:, begin * inputs : (begin + width) * inputs]
        taps = weight.transpose(2, 1, 0).reshape(width * inputs, filters)
        np.matmul(flat, taps, out=out[: len(windows), column : column + filters])
        column += filters


@dataclass(frozen=True, slots=True, eq=False)
class ConvolutionLookup:
    """One convolution, prepared for a table of distinct words."""

    words: FloatArray  # (distinct words * width, filters): the taps of a word follow each other
    width: int
    channels: FloatArray  # (width * channels, filters)
    bias: FloatArray  # (filters,)

    @classmethod
    def of(cls, vectors: FloatArray, weight: FloatArray, bias: FloatArray) -> ConvolutionLookup:
        """
        Prepare a (filters, inputs, width) weight for (distinct words, dimensions) vectors.

        The inputs after the vector's dimensions are channels that differ by position.
        """
        dimensions, (filters, _, width) = vectors.shape[1], weight.shape
        taps = weight[:, :dimensions].transpose(1, 2, 0).reshape(dimensions, width * filters)
        words = matmul(vectors, taps).reshape(-1, filters)
        channels = weight[:, dimensions:].transpose(2, 1, 0).reshape(-1, filters)
        return cls(words, width, np.ascontiguousarray(channels), bias)

    @classmethod
    def of_words(
        cls, vectors: FloatArray, channels: FloatArray, weight: FloatArray, bias: FloatArray
    ) -> ConvolutionLookup:
        """
        Prepare it for (distinct words, channels) that depend on the word alone.

        The result has no channels left. A zero word is put before the others: word 0 becomes 1.
        """
        dimensions, (filters, inputs, width) = vectors.shape[1], weight.shape
        taps = weight.transpose(1, 2, 0).reshape(inputs, width * filters)
        words = np.empty((len(vectors) + 1, width * filters), np.float32)
        words[0] = 0.0
        matmul(vectors, taps[:dimensions], out=words[1:])
        words[1:] += matmul(channels, taps[dimensions:])
        return cls(words.reshape(-1, filters), width, np.zeros((0, filters), np.float32), bias)

    @property
    def margin(self) -> int:
        """The number of zero words before and after each text."""
        return max(1, self.width // 2)

    def pooled(self, words: IntArray, channels: FloatArray, lengths: IntArray) -> FloatArray:
        """
        The maximum over each text's positions, (texts, filters).

        `words` are the words of all texts in a row, `channels` is (words, channels), and `lengths`
        the number of words per text, at least one.
        """
        start = np.cumsum(lengths + self.margin) - lengths  # of each text, margins included
        positions = np.repeat(start - (np.cumsum(lengths) - lengths), lengths)
        positions = positions + np.arange(len(words))
        size = int(lengths.sum()) + self.margin * (len(lengths) + 1)
        row = np.zeros(size, np.int64)
        row_channels = np.zeros((size, channels.shape[1]), np.float32)
        row[positions], row_channels[positions] = words, channels
        out = np.empty((len(lengths), self.words.shape[1]), np.float32)
        for block in _blocks(start + lengths, _VALUES_AT_ONCE // len(self.bias)):
            begin = int(start[block][0]) - self.margin
            end = int((start + lengths)[block][-1]) + self.margin
            values = self._values(row[begin:end], row_channels[begin:end])
            starts = start[block] - begin - self.width // 2
            out[block] = segment_reduce(np.maximum, values, starts, lengths[block])
        return np.asarray(out + self.bias)

    def pooled_per_pair(self, words: IntArray, channels: FloatArray) -> FloatArray:
        """The same for one text with (pairs, words, channels) that differ by pair."""
        pairs, length, own = channels.shape
        row = np.zeros(length + 2 * self.margin, np.int64)
        row[self.margin : -self.margin] = words
        no_channels = np.zeros((len(row), own), np.float32)
        lead = self.margin - self.width // 2
        word_values = self._values(row, no_channels)[lead : lead + length]  # (words, filters)
        out = np.empty((pairs, word_values.shape[1]), np.float32)
        step = max(1, _VALUES_AT_ONCE // len(self.bias) // length)
        for first in range(0, pairs, step):
            windows = _windows(channels[first : first + step], self.width)
            values = windows @ self.channels + word_values  # (pairs of the block, words, filters)
            out[first : first + step] = values.max(axis=1)
        return np.asarray(out + self.bias)

    def _values(self, row: IntArray, channels: FloatArray) -> FloatArray:
        """(positions, filters), without the first and last positions that lack half a window."""
        count = len(row) - self.width + 1
        first = row * self.width  # the first tap of each word
        out = self.words.take(first[:count], axis=0)
        for tap in range(1, self.width):
            out += self.words.take(first[tap : tap + count] + tap, axis=0)
        if channels.shape[1]:
            windows = _windows(channels[None], self.width)[0]
            out += windows[self.width // 2 :][:count] @ self.channels
        return out


def _blocks(ends: IntArray, positions: int) -> Iterator[slice]:
    """Consecutive texts with about `positions` positions together, at least one text."""
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + positions, side="right")))
        yield slice(first, last)
        first = last


def _windows(channels: FloatArray, width: int) -> FloatArray:
    """(texts, words, channels) → (texts, words, width * channels): each word with its neighbors."""
    texts, count, own = channels.shape
    padded = np.zeros((texts, count + width - 1, own), np.float32)
    padded[:, width // 2 : width // 2 + count] = channels
    return np.concatenate([padded[:, tap : tap + count] for tap in range(width)], axis=2)


def apply_list_layer(
    kind: ListLayerKind, tensors: Mapping[str, FloatArray], pairs: FloatArray
) -> FloatArray:
    """
    Run the layer over one question's pairs, in their order: (pairs, inputs) → (pairs, outputs).

    `tensors` have torch's names with the prefix "list.", for example "list.weight_ih_l0".
    """
    if kind == "none":
        return pairs
    layer = _lstm if kind.endswith("lstm") else _rnn
    forward = layer(tensors, pairs, "")
    if not kind.startswith("bi"):
        return forward
    return np.concatenate([forward, layer(tensors, pairs[::-1], "_reverse")[::-1]], axis=1)


def list_layer_shapes(kind: ListLayerKind, inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the layer's tensors; `hidden` is the size of both directions together."""
    if kind == "none":
        return {}
    bidirectional = kind.startswith("bi")
    size = hidden // 2 if bidirectional else hidden
    rows = 4 * size if kind.endswith("lstm") else size
    shapes: dict[str, tuple[int, ...]] = {}
    for direction in ("", "_reverse") if bidirectional else ("",):
        shapes[f"list.weight_ih_l0{direction}"] = (rows, inputs)
        shapes[f"list.weight_hh_l0{direction}"] = (rows, size)
        shapes[f"list.bias_ih_l0{direction}"] = (rows,)
        shapes[f"list.bias_hh_l0{direction}"] = (rows,)
    return shapes


def _rnn(tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str) -> FloatArray:
    inputs, recurrent = _projected(tensors, pairs, direction)
    state = np.zeros(recurrent.shape[1], np.float32)
    states = np.empty((len(pairs), len(state)), np.float32)
    for row, projected in enumerate(inputs):
        state = states[row] = np.tanh(projected + recurrent @ state)
    return states


def _lstm(tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str) -> FloatArray:
    inputs, recurrent = _projected(tensors, pairs, direction)
    state = np.zeros(recurrent.shape[1], np.float32)
    cell = np.zeros_like(state)
    states = np.empty((len(pairs), len(state)), np.float32)
    for row, projected in enumerate(inputs):
        input_gate, forget_gate, content, output_gate = np.split(projected + recurrent @ state, 4)
        cell = _sigmoid(forget_gate) * cell + _sigmoid(input_gate) * np.tanh(content)
        state = states[row] = _sigmoid(output_gate) * np.tanh(cell)
    return states


def _projected(
    tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str
) -> tuple[FloatArray, FloatArray]:
    """The input projection of all pairs at once, and the recurrent weights."""
    bias = tensors[f"list.bias_ih_l0{direction}"] + tensors[f"list.bias_hh_l0{direction}"]
    weight = tensors[f"list.weight_ih_l0{direction}"]
    return pairs @ weight.T + bias, tensors[f"list.weight_hh_l0{direction}"]


def _sigmoid(values: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)), np.float32)  # cannot overflow
