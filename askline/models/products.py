"""
Matrix products in pieces so small that BLAS computes each on the thread that asks.

Products of one question are too small to gain from BLAS threads: waking them takes longer than it
saves, and two threads of ours that both ask for them wait for each other.
"""

from __future__ import annotations

import numpy as np

from .channels import FloatArray

__all__ = ["product", "weighted_sum"]

# Up to so many multiplications OpenBLAS keeps to one thread, with a matrix and with a vector.
_BY_MATRIX, _BY_VECTOR = 2**18, 2**13
_WORTH_A_PIECE = 8  # rows; fewer at once are slower than the threads


def product(rows: FloatArray, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
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
