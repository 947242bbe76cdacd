"""Batches of sequences that all have the same length, so that nothing is padded."""

from __future__ import annotations

import numpy as np

from .numpy_ops import IntArray

__all__ = ["equal_length_batches"]

_MAX_BATCH_TOKENS = 384  # larger batches are no faster, and a deadline waits for one batch
_MIN_BATCH_TOKENS = 64  # in smaller batches the overhead of starting a batch begins to count


def equal_length_batches(
    sequences: IntArray, lengths: IntArray, levels: IntArray, *, threads: int
) -> list[IntArray]:
    """
    Split sequences into batches of equal length and equal level, enough for all threads.

    The longest sequences come first: the last batches are then short, and all threads finish at
    about the same time.
    """
    if not len(sequences):
        return []
    budget = max(_MIN_BATCH_TOKENS, min(_MAX_BATCH_TOKENS, int(lengths.sum()) // (2 * threads)))
    groups = dict[tuple[int, int], list[int]]()  # in lists of Python: most of them are short
    for sequence, length, level in zip(
        sequences.tolist(), lengths.tolist(), levels.tolist(), strict=True
    ):
        groups.setdefault((-length, level), []).append(sequence)
    batches = list[IntArray]()
    for (length, _), group in sorted(groups.items()):
        parts = -(-len(group) // max(1, budget // -length))
        members = np.array(group, np.int64)
        batches += np.array_split(members, parts) if parts > 1 else [members]
    return batches
