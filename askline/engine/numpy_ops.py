"""
Numpy operations of the light rankers: matrix products on one thread, and segment reductions.

The products of one question are too small to gain from BLAS threads: waking them takes longer than
it saves, and two threads of ours that both use them wait for each other. So products are computed
in blocks so small that BLAS computes each one on the calling thread.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FloatArray",
    "IntArray",
    "matmul",
    "segment_reduce",
    "weighted_sum",
]

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]

# The largest number of multiplications that OpenBLAS computes on one thread.
_MAX_MATRIX_PRODUCTS, _MAX_VECTOR_PRODUCTS = 2**18, 2**13
_MIN_BLOCK_ROWS = 8  # smaller blocks are slower than BLAS threads
_LONG_SEGMENT = 128  # rows; longer segments are rare and are reduced one by one


def matmul(rows: FloatArray, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """`rows @ weights` on one thread, (rows, inputs) by (inputs, outputs) or by (inputs,)."""
    count, outputs = len(rows), weights.shape[1:]
    result = np.empty((count, *outputs), np.float32) if out is None else out
    limit = _MAX_MATRIX_PRODUCTS if outputs else _MAX_VECTOR_PRODUCTS
    step = 1 << (limit // max(1, weights.size)).bit_length() >> 1  # a power of two
    whole = count // step * step if step >= _MIN_BLOCK_ROWS else 0
    if whole:
        blocks = rows[:whole].reshape(-1, step, rows.shape[1])
        np.matmul(blocks, weights, out=result[:whole].reshape(-1, step, *outputs))
    np.matmul(rows[whole:], weights, out=result[whole:])
    return result


def weighted_sum(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """`weights @ rows` on one thread, (rows,) by (rows, outputs)."""
    count, outputs = rows.shape
    step = max(1, _MAX_VECTOR_PRODUCTS // max(1, outputs))
    whole = count // step * step
    blocks = weights[:whole].reshape(-1, 1, step) @ rows[:whole].reshape(-1, step, outputs)
    return np.asarray(blocks.sum(axis=(0, 1)) + weights[whole:] @ rows[whole:], np.float32)


def segment_reduce(
    ufunc: np.ufunc,
    table: FloatArray,
    starts: IntArray,
    lengths: IntArray,
    *,
    words: IntArray | None = None,
) -> FloatArray:
    """
    Reduce the rows of each segment with `ufunc`: (segments, columns).

    A segment's rows are the `lengths` rows of `table` from its start on or, with `words`, the rows
    whose numbers stand there. No segment may be empty. All segments add their next row at once, so
    that numpy's inner loop runs over many rows; that of `ufunc.reduceat` runs along one column of
    one segment, which is several times slower.
    """
    order = np.argsort(-lengths, kind="stable")  # the segments that still have rows come first
    starts, negative_lengths = starts[order], -lengths[order]

    def rows(at: IntArray) -> FloatArray:
        return table.take(at if words is None else words.take(at), axis=0)

    reduced = rows(starts)
    long = int(np.searchsorted(negative_lengths, -_LONG_SEGMENT, side="left"))
    for segment in range(long):
        own = np.arange(starts[segment], starts[segment] - negative_lengths[segment])
        reduced[segment] = ufunc.reduce(rows(own), axis=0)
    longest = -int(negative_lengths[long]) if long < len(negative_lengths) else 0
    # The number of segments that have a second row, a third row, …
    counts = np.searchsorted(negative_lengths, -np.arange(2, longest + 1), side="right")
    for place, count in enumerate(counts.tolist(), start=1):
        active = reduced[long:count]
        ufunc(active, rows(starts[long:count] + place), out=active)
    out = np.empty_like(reduced)
    out[order] = reduced
    return out
