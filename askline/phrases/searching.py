"""The best phrases among those of several segments, by their vectors and the words around them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from .model import CodedQuestion
from .segments import Segment

__all__ = ["nearest_rows"]

Places = NDArray[np.int64]


def nearest_rows(
    parts: Sequence[tuple[Segment, Collection[int]]],
    question: CodedQuestion,
    k: int,
    *,
    near: int,
    probes: int,
) -> list[tuple[int, int, float]]:
    """
    Segment, row and score of the `k` best, best first; none of the documents gone from a segment.

    Of all segments together the `near` nearest by their vectors are put in order with their words:
    what is found does not depend on how the phrases are dealt out, where search is exact.
    """
    if not parts:
        return []
    found = [
        segment.nearest(question.dense, near, probes=probes, gone=gone) for segment, gone in parts
    ]
    owners = np.repeat(np.arange(len(found)), [len(rows) for rows, _ in found])
    rows, scores = map(np.concatenate, zip(*found, strict=True))
    kept = np.argsort(-scores, kind="stable")[:near]
    rows, scores, owners = rows[kept], scores[kept], owners[kept]
    words, weights = _words([segment for segment, _ in parts], owners, rows)
    scores = scores + question.lexical(words, weights)
    best = np.argsort(-scores, kind="stable")[:k]
    return [(int(owners[at]), int(rows[at]), float(scores[at])) for at in best]


def _words(
    segments: Sequence[Segment], owners: Places, rows: Places
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Words around these phrases and their weights, (rows, k)."""
    size = segments[0].words.shape[1]
    words = np.zeros((len(rows), size), np.int32)
    weights = np.zeros((len(rows), size), np.float32)
    for owner in np.unique(owners).tolist():
        own = owners == owner
        words[own], weights[own] = segments[owner].lexical(rows[own])
    return words, weights
