"""A convolution over words and its maximum over positions, in numpy."""

from __future__ import annotations

import numpy as np

from ..models.channels import FloatArray, IntArray

__all__ = ["pooled_convolution"]


def pooled_convolution(
    words: FloatArray, lengths: IntArray, weight: FloatArray, bias: FloatArray
) -> FloatArray:
    """
    (texts, longest, inputs) → (texts, filters), each text's own positions alone in the maximum.

    `weight` is (filters, inputs, width), as torch keeps it. Texts are followed by zero rows; as
    many zero rows are put before and behind them that there is one window for each word.
    """
    texts, longest, inputs = words.shape
    filters, _, width = weight.shape
    padded = np.zeros((texts, longest + width - 1, inputs), np.float32)
    padded[:, width // 2 : width // 2 + longest] = words
    values = np.zeros((texts, longest, filters), np.float32)
    for tap in range(width):
        values += padded[:, tap : tap + longest] @ weight[:, :, tap].T
    values[np.arange(longest) >= lengths[:, None]] = -np.inf
    return np.asarray(values.max(axis=1) + bias, np.float32)
