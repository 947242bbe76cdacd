"""Tables in 4 bits: whole numbers from -7 to 7, two in a byte, a step for each few of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError

__all__ = ["from_nibbles", "nibble_shapes", "to_nibbles"]

_GROUP = 32  # numbers that share a step
_MOST = 7
_ZERO = 8

FloatArray = NDArray[np.float32]

_BYTES = np.arange(256)
_TWO: NDArray[np.complex64] = (
    np.stack([_BYTES & 15, _BYTES >> 4], -1).astype(np.float32) - _ZERO
).view(np.complex64)[:, 0]
"""The two numbers in each byte side by side, so that one look-up finds both."""


def nibble_shapes(rows: int, columns: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of the bytes and of the steps of a table of this size."""
    return (rows, columns // 2), (rows, columns // _GROUP)


def to_nibbles(table: FloatArray) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """
    (rows, columns) → (rows, columns / 2) bytes, the lower half first, and (rows, groups) steps.

    A table that came out of `from_nibbles` goes in again without a loss.
    """
    rows, columns = table.shape
    if columns % _GROUP:
        raise ModelError(f"A table in 4 bits must have n × {_GROUP} columns, got {columns}.")
    groups = table.reshape(rows, -1, _GROUP)
    steps = (np.maximum(np.abs(groups).max(-1), 1e-6) / _MOST).astype(np.float16)
    whole = np.rint(groups / steps.astype(np.float32)[..., None])
    bytes_ = (np.clip(whole, -_MOST, _MOST) + _ZERO).astype(np.uint8).reshape(rows, -1)
    return bytes_[:, ::2] | bytes_[:, 1::2] << 4, steps


def from_nibbles(packed: NDArray[np.uint8], steps: NDArray[Any]) -> FloatArray:
    """The table again, (rows, columns)."""
    both = _TWO[packed].view(np.float32)  # (rows, columns)
    groups = both.reshape(len(packed), steps.shape[1], -1) * steps.astype(np.float32)[..., None]
    return groups.reshape(len(packed), -1)
