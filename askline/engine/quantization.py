"""
Int8 quantization of dense layers, and packed int4 tables.

Int8: inputs are quantized to the 256 values of a byte, weights to the 129 integers from -64 to 64.
Processors without dot-product instructions add two products in 16 bits, where 2 × 255 × 64 still
fits and 2 × 255 × 127 does not. Two methods make up for the coarse weights. A few channels of an
encoder's states are much larger than the others; they are scaled down and their weights scaled up
in exchange (SmoothQuant, Xiao et al., 2023). And weights are rounded column by column, where the
rounding error of a column is compensated by the columns that follow, measured on real inputs
(GPTQ, Frantar et al., 2023).

Int4: integers from -7 to 7, two per byte, with one scale per group of 32 numbers of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from .numpy_ops import FloatArray

__all__ = [
    "InputQuantization",
    "best_row_scales",
    "fit_input_quantization",
    "int4_shapes",
    "pack_int4",
    "quantize_rows",
    "quantize_rows_gptq",
    "refit_input_quantization",
    "round_rows",
    "unpack_int4",
]

_MAX_WEIGHT = 64
_MAX_INPUT = 255
_ROW_CLIPS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)  # tried shares of a row's largest weight
_INPUT_CLIPS = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)  # tried shares of the inputs' range
_SMOOTH_STRENGTHS = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8)  # tried exponents of SmoothQuant
_SMOOTH_MIN_GAIN = 0.9  # smoothing costs a product per input: the error must fall to this share
_SAMPLE_TOKENS = 400  # on which the input quantization is chosen
_GPTQ_BLOCK = 64  # columns whose errors are passed on together
_GPTQ_DAMPING = 0.01  # share of the mean square that is added to the diagonal, for stability

_INT4_GROUP = 32
_INT4_MAX = 7
_INT4_ZERO = 8
_BYTES = np.arange(256)
_INT4_PAIRS: NDArray[np.complex64] = (
    np.stack([_BYTES & 15, _BYTES >> 4], -1).astype(np.float32) - _INT4_ZERO
).view(np.complex64)[:, 0]
"""The two numbers in each byte, as one complex number, so that one lookup finds both."""


def quantize_rows(weight: FloatArray, largest: int = 127) -> tuple[NDArray[np.int8], FloatArray]:
    """Round (rows, columns) to integers from -largest to largest; one scale per row."""
    scale = np.maximum(np.abs(weight).max(axis=1), 1e-12) / np.float32(largest)
    integers = np.clip(np.rint(weight / scale[:, None]), -largest, largest)
    return integers.astype(np.int8), scale.astype(np.float32)


def quantize_rows_gptq(
    weight: FloatArray, inputs: FloatArray
) -> tuple[NDArray[np.int8], FloatArray]:
    """
    Round (outputs, channels) to integers with a small error on these inputs; one scale per row.

    Channels with large inputs come first. The rounding error of a channel is compensated by the
    weights of the channels after it, as far as their inputs correlate.
    """
    scale = best_row_scales(weight)
    gram = (inputs.T @ inputs).astype(np.float64)  # (channels, channels)
    gram[np.diag_indices_from(gram)] += _GPTQ_DAMPING * np.trace(gram) / len(gram)
    order = np.argsort(-np.diag(gram), kind="stable")
    # The upper Cholesky factor of the inverse says how a channel's error is passed on.
    upper = np.linalg.cholesky(np.linalg.inv(gram[np.ix_(order, order)])).T
    remaining = weight[:, order].astype(np.float64)
    integers = np.empty(remaining.shape, np.int8)
    for first in range(0, len(order), _GPTQ_BLOCK):
        block = slice(first, first + _GPTQ_BLOCK)
        after = slice(first + _GPTQ_BLOCK, None)
        integers[:, block], errors = _quantize_block(
            remaining[:, block], scale, upper[block, block]
        )
        remaining[:, after] -= errors @ upper[block, after]
    original_order = np.empty_like(integers)
    original_order[:, order] = integers
    return original_order, scale.astype(np.float32)


def _quantize_block(
    weights: NDArray[np.float64], scale: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """The integers of some columns, and their errors for the columns after the block."""
    integers, errors = np.empty(weights.shape, np.int8), np.empty(weights.shape)
    weights = weights.copy()
    for at in range(weights.shape[1]):
        integers[:, at] = np.clip(np.rint(weights[:, at] / scale), -_MAX_WEIGHT, _MAX_WEIGHT)
        errors[:, at] = (weights[:, at] - integers[:, at] * scale) / upper[at, at]
        weights[:, at + 1 :] -= errors[:, at, None] * upper[at, at + 1 :]
    return integers, errors


def round_rows(weight: FloatArray, scale: NDArray[Any]) -> NDArray[np.int8]:
    """Round (outputs, channels) to integers, with a given scale per row."""
    rounded = np.rint(weight / scale.astype(np.float32)[:, None])
    return np.asarray(np.clip(rounded, -_MAX_WEIGHT, _MAX_WEIGHT), np.int8)


def best_row_scales(weight: FloatArray) -> NDArray[np.float64]:
    """Per row, the scale with the least squared error; the largest weights may be clipped."""
    largest = np.maximum(np.abs(weight).max(axis=1), 1e-12).astype(np.float64)
    scales = np.stack([clip * largest / _MAX_WEIGHT for clip in _ROW_CLIPS])  # (clips, rows)
    errors = []
    for scale in scales[:, :, None]:
        rounded = np.clip(np.rint(weight / scale), -_MAX_WEIGHT, _MAX_WEIGHT) * scale
        errors.append(np.square(rounded - weight).sum(axis=1))
    best = np.argmin(np.stack(errors), axis=0)
    return np.asarray(scales[best, np.arange(len(best))])


@dataclass(frozen=True, slots=True, eq=False)
class InputQuantization:
    """How an input becomes uint8: `round(input * smooth / scale) + zero`."""

    scale: float
    zero: int
    smooth: FloatArray | None = None

    def fake_quantize(self, inputs: FloatArray) -> FloatArray:
        """Quantize the inputs and convert them back to float."""
        smoothed = inputs if self.smooth is None else inputs * self.smooth
        quantized = np.clip(np.rint(smoothed / np.float32(self.scale)) + self.zero, 0, _MAX_INPUT)
        back = (quantized - self.zero) * np.float32(self.scale)
        return np.asarray(back if self.smooth is None else back / self.smooth, np.float32)


def fit_input_quantization(inputs: FloatArray, weights: Sequence[FloatArray]) -> InputQuantization:
    """
    The quantization with the least squared error of the layers' outputs.

    `inputs` is (tokens, channels); `weights` are those of all layers that read it.
    """
    weight = np.concatenate(list(weights))  # (outputs, channels)
    sample = inputs[:: max(1, len(inputs) // _SAMPLE_TOKENS)]
    expected = sample @ weight.T
    best, least = InputQuantization(1.0, 0), np.inf
    for strength in _SMOOTH_STRENGTHS:
        smooth = _smooth_factors(inputs, weight, strength)
        smoothed, rows = sample * smooth, np.asarray(weight / smooth, np.float32)
        low = float((inputs.min(axis=0) * smooth).min())
        high = float((inputs.max(axis=0) * smooth).max())
        integers, scales = quantize_rows(rows, _MAX_WEIGHT)
        rounded = integers.astype(np.float32) * scales[:, None]
        for clip in _INPUT_CLIPS:
            tried = _clipped_range(low, high, clip)
            error = float(np.square(tried.fake_quantize(smoothed) @ rounded.T - expected).mean())
            if error < least * (_SMOOTH_MIN_GAIN if best.smooth is None else 1.0):
                best = InputQuantization(tried.scale, tried.zero, smooth if strength else None)
                least = error
    return best


def refit_input_quantization(
    inputs: FloatArray, weight: FloatArray, smooth: FloatArray | None = None
) -> InputQuantization:
    """The best quantization for int8 weights that stay as they are, and their `smooth`."""
    sample = inputs[:: max(1, len(inputs) // _SAMPLE_TOKENS)]
    expected = sample @ weight.T
    smoothed = inputs if smooth is None else inputs * smooth
    low, high = float(smoothed.min()), float(smoothed.max())
    tried = [replace(_clipped_range(low, high, clip), smooth=smooth) for clip in _INPUT_CLIPS]
    errors = [np.square(one.fake_quantize(sample) @ weight.T - expected).mean() for one in tried]
    return tried[int(np.argmin(errors))]


def _smooth_factors(inputs: FloatArray, weight: FloatArray, strength: float) -> FloatArray:
    """SmoothQuant's factor per channel: about 1 for most, less for the large ones."""
    channel = np.maximum(np.abs(inputs).max(axis=0), 1e-5)
    row = np.maximum(np.abs(weight).max(axis=0), 1e-5)
    factors = row ** (1 - strength) / channel**strength if strength else np.ones_like(row)
    return np.asarray(factors / np.median(factors), np.float32)


def _clipped_range(low: float, high: float, clip: float) -> InputQuantization:
    """For inputs from `low` to `high`, clipped to a share `clip` of the larger bound."""
    bound = clip * max(-low, high, 1e-8)
    low, high = max(min(low, 0.0), -bound), min(max(high, 0.0), bound)
    scale = float(np.float32((high - low) / _MAX_INPUT))
    return InputQuantization(scale, round(-low / scale))


def int4_shapes(rows: int, columns: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The shapes of a packed table and of its scales."""
    return (rows, columns // 2), (rows, columns // _INT4_GROUP)


def pack_int4(table: FloatArray) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """
    Quantize (rows, columns) to (rows, columns / 2) bytes, low half first, and scales per group.

    Packing a table that came out of `unpack_int4` again is lossless.
    """
    rows, columns = table.shape
    if columns % _INT4_GROUP:
        raise ModelError(
            f"An int4 table must have a multiple of {_INT4_GROUP} columns, got {columns}."
        )
    groups = table.reshape(rows, -1, _INT4_GROUP)
    scales = (np.maximum(np.abs(groups).max(-1), 1e-6) / _INT4_MAX).astype(np.float16)
    integers = np.rint(groups / scales.astype(np.float32)[..., None])
    shifted = (np.clip(integers, -_INT4_MAX, _INT4_MAX) + _INT4_ZERO).astype(np.uint8)
    halves = shifted.reshape(rows, -1)
    return halves[:, ::2] | halves[:, 1::2] << 4, scales


def unpack_int4(packed: NDArray[np.uint8], scales: NDArray[Any]) -> FloatArray:
    """The (rows, columns) table in float."""
    integers = _INT4_PAIRS[packed].view(np.float32)  # (rows, columns)
    groups = integers.reshape(len(packed), scales.shape[1], -1)
    return (groups * scales.astype(np.float32)[..., None]).reshape(len(packed), -1)
