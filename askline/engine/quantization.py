"""
Tables in 4 bits: whole numbers from -7 to 7, two in a byte, a step for each few of a row.

Dense layers in 8 bits: the weights' steps, the inputs' steps, and what is moved between the two.

Inputs take the 256 values of a byte, weights the 129 values from -64 to 64: processors without
dot-product instructions add two products in 16 bits, where 255 × 64 twice still fits and 255 × 127
does not. Two things make up for the coarse steps. A few channels of an encoder's states are far
larger than the rest; they are made smaller and their weights larger in exchange, as SmoothQuant
does (Xiao et al., 2023). And weights are rounded one column after the other, each column's error
handed on to those that follow, weighed by real inputs, as GPTQ does (Frantar et al., 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError

__all__ = [
    "InputQuantization",
    "fit_input_quantization",
    "int4_shapes",
    "pack_int4",
    "quantize_rows",
    "quantize_rows_gptq",
    "refit_input_quantization",
    "unpack_int4",
]

_GROUP = 32  # numbers that share a step
_MOST = 7
_ZERO = 8

FloatArray = NDArray[np.float32]

_BYTES = np.arange(256)
_TWO: NDArray[np.complex64] = (
    np.stack([_BYTES & 15, _BYTES >> 4], -1).astype(np.float32) - _ZERO
).view(np.complex64)[:, 0]
"""The two numbers in each byte side by side, so that one look-up finds both."""


def int4_shapes(rows: int, columns: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of the bytes and of the steps of a table of this size."""
    return (rows, columns // 2), (rows, columns // _GROUP)


def pack_int4(table: FloatArray) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """
    (rows, columns) → (rows, columns / 2) bytes, the lower half first, and (rows, groups) steps.

    A table that came out of `unpack_int4` goes in again without a loss.
    """
    rows, columns = table.shape
    if columns % _GROUP:
        raise ModelError(f"A table in 4 bits must have n × {_GROUP} columns, got {columns}.")
    groups = table.reshape(rows, -1, _GROUP)
    steps = (np.maximum(np.abs(groups).max(-1), 1e-6) / _MOST).astype(np.float16)
    whole = np.rint(groups / steps.astype(np.float32)[..., None])
    bytes_ = (np.clip(whole, -_MOST, _MOST) + _ZERO).astype(np.uint8).reshape(rows, -1)
    return bytes_[:, ::2] | bytes_[:, 1::2] << 4, steps


def unpack_int4(packed: NDArray[np.uint8], steps: NDArray[Any]) -> FloatArray:
    """The table again, (rows, columns)."""
    both = _TWO[packed].view(np.float32)  # (rows, columns)
    groups = both.reshape(len(packed), steps.shape[1], -1) * steps.astype(np.float32)[..., None]
    return groups.reshape(len(packed), -1)


_MOST_QUANTISING = 64  # of a weight
_BYTE = 255  # of an input
_STRENGTHS = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8)  # how much of a channel's size is moved
_CLIPS = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)  # of the range; what is outside is clipped
_ROW_CLIPS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
_BLOCK = 64  # columns whose errors are handed on together
_TRIED = 400  # tokens that the input's steps are chosen on
_WORTH = 0.9  # moving between channels costs a product for each input: the error must fall to this
_DAMPING = 0.01  # of the mean square, added to each channel's: keeps the system well set


@dataclass(frozen=True, slots=True, eq=False)
class InputQuantization:
    """How an input becomes bytes: `round(input * smooth / scale) + zero`."""

    scale: float
    zero: int
    smooth: FloatArray | None = None

    def rounded(self, inputs: FloatArray) -> FloatArray:
        """The inputs as the bytes stand for them."""
        smoothed = inputs if self.smooth is None else inputs * self.smooth
        bytes_ = np.clip(np.rint(smoothed / np.float32(self.scale)) + self.zero, 0, _BYTE)
        back = (bytes_ - self.zero) * np.float32(self.scale)
        return np.asarray(back if self.smooth is None else back / self.smooth, np.float32)


def quantize_rows(weight: FloatArray, most: int = 127) -> tuple[NDArray[np.int8], FloatArray]:
    """(rows, columns) → whole numbers up to `most`, to the nearest, and each row's step."""
    scale = np.maximum(np.abs(weight).max(axis=1), 1e-12) / np.float32(most)
    steps = np.clip(np.rint(weight / scale[:, None]), -most, most)
    return steps.astype(np.int8), scale.astype(np.float32)


def quantize_rows_gptq(
    weight: FloatArray, inputs: FloatArray
) -> tuple[NDArray[np.int8], FloatArray]:
    """
    (outputs, channels) → whole numbers, and each row's step, with little error on these inputs.

    Channels with large inputs come first; what rounding a channel's weights gets wrong is put right
    by the weights of the channels behind it, as far as their inputs go together.
    """
    scale = _row_steps(weight)
    gram = (inputs.T @ inputs).astype(np.float64)
    gram[np.diag_indices_from(gram)] += _DAMPING * np.trace(gram) / len(gram)
    order = np.argsort(-np.diag(gram), kind="stable")
    # The upper factor of the inverse holds what each channel's error means for those behind it.
    upper = np.linalg.cholesky(np.linalg.inv(gram[np.ix_(order, order)])).T
    left = weight[:, order].astype(np.float64)
    steps = np.empty(left.shape, np.int8)
    for first in range(0, len(order), _BLOCK):
        block = slice(first, first + _BLOCK)
        behind = slice(first + _BLOCK, None)
        steps[:, block], errors = _round_block(left[:, block], scale, upper[block, block])
        left[:, behind] -= errors @ upper[block, behind]
    back = np.empty_like(steps)
    back[:, order] = steps
    return back, scale.astype(np.float32)


def _round_block(
    left: NDArray[np.float64], scale: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Whole numbers for some columns, and their errors, for the columns behind the block."""
    steps, errors = np.empty(left.shape, np.int8), np.empty(left.shape)
    left = left.copy()
    for at in range(left.shape[1]):
        steps[:, at] = np.clip(np.rint(left[:, at] / scale), -_MOST_QUANTISING, _MOST_QUANTISING)
        errors[:, at] = (left[:, at] - steps[:, at] * scale) / upper[at, at]
        left[:, at + 1 :] -= errors[:, at, None] * upper[at, at + 1 :]
    return steps, errors


def _row_steps(weight: FloatArray) -> NDArray[np.float64]:
    """For each row the step with the least squared error; the largest weights may be clipped."""
    most = np.maximum(np.abs(weight).max(axis=1), 1e-12).astype(np.float64)
    steps = np.stack([clip * most / _MOST_QUANTISING for clip in _ROW_CLIPS])  # (clips, rows)
    errors = []
    for step in steps[:, :, None]:
        rounded = np.clip(np.rint(weight / step), -_MOST_QUANTISING, _MOST_QUANTISING) * step
        errors.append(np.square(rounded - weight).sum(axis=1))
    best = np.argmin(np.stack(errors), axis=0)
    return np.asarray(steps[best, np.arange(len(best))])


def fit_input_quantization(inputs: FloatArray, weights: Sequence[FloatArray]) -> InputQuantization:
    """
    The steps with the least squared error of what the layers make of these inputs.

    `inputs` is (tokens, channels), `weights` are of the layers that read it.
    """
    weight = np.concatenate(list(weights))  # (outputs, channels)
    some = inputs[:: max(1, len(inputs) // _TRIED)]
    wanted = some @ weight.T
    best, least = InputQuantization(1.0, 0), np.inf
    for strength in _STRENGTHS:
        smooth = _factors(inputs, weight, strength)
        moved, rows = some * smooth, np.asarray(weight / smooth, np.float32)
        low, high = (
            float((inputs.min(axis=0) * smooth).min()),
            float((inputs.max(axis=0) * smooth).max()),
        )
        steps, scales = quantize_rows(rows, _MOST_QUANTISING)
        rounded = steps.astype(np.float32) * scales[:, None]
        for clip in _CLIPS:
            tried = _steps(low, high, clip)
            error = float(np.square(tried.rounded(moved) @ rounded.T - wanted).mean())
            if error < least * (_WORTH if best.smooth is None else 1.0):
                best = InputQuantization(tried.scale, tried.zero, smooth if strength else None)
                least = error
    return best


def refit_input_quantization(
    inputs: FloatArray, weight: FloatArray, smooth: FloatArray | None = None
) -> InputQuantization:
    """The best steps for weights in bytes that stay as they are, `smooth` with them."""
    some = inputs[:: max(1, len(inputs) // _TRIED)]
    wanted = some @ weight.T
    moved = inputs if smooth is None else inputs * smooth
    low, high = float(moved.min()), float(moved.max())
    tried = [replace(_steps(low, high, clip), smooth=smooth) for clip in _CLIPS]
    errors = [np.square(one.rounded(some) @ weight.T - wanted).mean() for one in tried]
    return tried[int(np.argmin(errors))]


def _factors(inputs: FloatArray, weight: FloatArray, strength: float) -> FloatArray:
    """What each channel is multiplied by; about 1 for most, less for the large ones."""
    channel = np.maximum(np.abs(inputs).max(axis=0), 1e-5)
    row = np.maximum(np.abs(weight).max(axis=0), 1e-5)
    factors = row ** (1 - strength) / channel**strength if strength else np.ones_like(row)
    return np.asarray(factors / np.median(factors), np.float32)


def _steps(low: float, high: float, clip: float) -> InputQuantization:
    """For inputs between these bounds, of which the larger is brought in by `clip`."""
    bound = clip * max(-low, high, 1e-8)
    low, high = max(min(low, 0.0), -bound), min(max(high, 0.0), bound)
    scale = float(np.float32((high - low) / _BYTE))
    return InputQuantization(scale, round(-low / scale))
