"""
Matrix products in pieces so small that BLAS computes each on the thread that asks.

Products of one question are too small to gain from BLAS threads: waking them takes longer than it
saves, and two threads of ours that both ask for them wait for each other.

Sums and maxima over the words of each text, for words that are rows of several numbers.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "matmul",
    "segment_reduce",
    "weighted_sum",
]

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]

# Up to so many multiplications OpenBLAS keeps to one thread, with a matrix and with a vector.
_BY_MATRIX, _BY_VECTOR = 2**18, 2**13
_WORTH_A_PIECE = 8  # rows; fewer at once are slower than the threads


def matmul(rows: FloatArray, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """`rows @ weights`, (rows, inputs) by (inputs, outputs) or by (inputs,)."""
    count, outputs = len(rows), weights.shape[1:]
    found = np.empty((count, *outputs), np.float32) if out is None else out
    limit = _BY_MATRIX if outputs else _BY_VECTOR
    step = 1 << (limit // max(1, weights.size)).bit_length() >> 1  # a power of two
    whole = count // step * step if step >= _WORTH_A_PIECE else 0
    if whole:
        pieces = rows[:whole].reshape(-1, step, rows.shape[1])
        np.matmul(pieces, weights, out=found[:whole].reshape(-1, step, *outputs))
    np.matmul(rows[whole:], weights, out=found[whole:])
    return found


def weighted_sum(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """`weights @ rows`, (rows,) by (rows, outputs)."""
    count, outputs = rows.shape
    step = max(1, _BY_VECTOR // max(1, outputs))
    whole = count // step * step
    pieces = weights[:whole].reshape(-1, 1, step) @ rows[:whole].reshape(-1, step, outputs)
    return np.asarray(pieces.sum(axis=(0, 1)) + weights[whole:] @ rows[whole:], np.float32)


_LONG = 128  # words; longer texts are few and are done one by one


def segment_reduce(
    ufunc: np.ufunc,
    table: FloatArray,
    starts: IntArray,
    lengths: IntArray,
    *,
    words: IntArray | None = None,
) -> FloatArray:
    """
    (texts, columns): `ufunc` over the rows of each text, at least one.

    A text's rows are those from its start on or, with `words`, those that its words name. All
    texts take their next row at once, so that numpy's loops run over many rows; those of
    `ufunc.reduceat` run along one column of one text, which takes several times as long.
    """
    order = np.argsort(-lengths, kind="stable")  # the texts that still have rows stand first
    starts, falling = starts[order], -lengths[order]

    def rows(at: IntArray) -> FloatArray:
        return table.take(at if words is None else words.take(at), axis=0)

    found = rows(starts)
    long = int(np.searchsorted(falling, -_LONG, side="left"))
    for text in range(long):
        own = np.arange(starts[text], starts[text] - falling[text])
        found[text] = ufunc.reduce(rows(own), axis=0)
    longest = -int(falling[long]) if long < len(falling) else 0
    # How many texts have a second row, a third, …
    having = np.searchsorted(falling, -np.arange(2, longest + 1), side="right")
    for place, count in enumerate(having.tolist(), start=1):
        some = found[long:count]
        ufunc(some, rows(starts[long:count] + place), out=some)
    out = np.empty_like(found)
    out[order] = found
    return out
