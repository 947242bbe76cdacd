"""
From the extractor's scores to candidate phrases.

Two decodings: the paper's beam (the best starts, then the best ends of each) and the best by joint
probability P(start) · P(end | start). The second never wastes a place on the second end of a start
whose ends are all but certain, and finds more answers with as many candidates: docs/phrases.md.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UnknownNameError

__all__ = [
    "DECODINGS",
    "Decoding",
    "decode",
]

Decoding = Literal["beam", "joint"]
DECODINGS: tuple[str, ...] = get_args(Decoding)
Floats = NDArray[np.float32]
Spans = NDArray[np.int32]


def decode(
    starts: Floats, ends: Floats, *, limit: int = 100, how: Decoding = "joint", beam: int = 2
) -> tuple[Spans, Floats]:
    """
    At most `limit` spans, best first, and the log-probability of each.

    `starts` (tokens,) are log P(start); `ends` (tokens, lengths) are log P(end | start), the column
    counting tokens from the start on. -inf marks what may not be. Spans (n, 2) are the first and
    the last token. Under `beam` there are `limit // beam` starts with `beam` ends each. Equal
    probabilities keep the order of the text.
    """
    if limit < 1 or beam < 1:
        raise InputError(f"limit and beam must be at least 1, got {limit} and {beam}.")
    if how == "joint":
        scores = starts[:, None] + ends
    elif how == "beam":
        scores = _beamed(starts, ends, max(1, limit // beam), beam)
    else:
        raise UnknownNameError("decoding", how, DECODINGS)
    flat = scores.ravel()
    best = _top(flat, limit)
    best = best[np.isfinite(flat[best])]
    first, length = np.divmod(best, max(1, ends.shape[1]))
    return np.stack([first, first + length], 1).astype(np.int32), flat[best].astype(np.float32)


def _beamed(starts: Floats, ends: Floats, count: int, beam: int) -> Floats:
    """Joint scores of the beam's spans, -inf for all others."""
    scores = np.full(ends.shape, -np.inf, np.float32)
    for start in _top(starts, count):
        kept = _top(ends[start], beam)
        scores[start, kept] = starts[start] + ends[start, kept]
    return scores


def _top(values: Floats, count: int) -> NDArray[np.int64]:
    """Places of the highest values, highest first, equal ones in order."""
    if count < len(values):  # a partition first: a sort of all spans would cost more than they did
        edge = np.partition(values, len(values) - count)[len(values) - count]
        places = np.flatnonzero(values >= edge)
    else:
        places = np.arange(len(values))
    order = np.argsort(-values[places], kind="stable")[:count]
    return places[order]
