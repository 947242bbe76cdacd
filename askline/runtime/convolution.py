"""Convolutions over words and their maximum over positions, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..models.channels import FloatArray, IntArray
from ..models.segments import folded

__all__ = ["pooled_convolution", "pooled_convolutions"]

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
    return np.asarray(folded(np.maximum, values, starts, lengths) + bias, np.float32)


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
