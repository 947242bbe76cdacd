"""
Phrase extraction: from the probabilities of starts and ends to candidate spans.

There are two decodings: the beam search of the paper (the best starts, then the best ends of each)
and the best spans by the joint probability P(start) · P(end | start). The second does not spend
candidates on a second end where one end is nearly certain, and finds more answers with the same
number of candidates (research/notes/phrases.md).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UnknownNameError

__all__ = [
    "DECODINGS",
    "Decoding",
    "decode_spans",
]

Decoding = Literal["beam", "joint"]
DECODINGS: tuple[str, ...] = get_args(Decoding)
Floats = NDArray[np.float32]
TokenSpans = NDArray[np.int32]
_MOST_VARIANTS = 4
"""Spans that are looked at per returned one, if variants are left out."""


def decode_spans(
    starts: Floats,
    ends: Floats,
    *,
    limit: int = 100,
    decoding: Decoding = "joint",
    beam: int = 2,
    minor: NDArray[np.bool_] | None = None,
) -> tuple[TokenSpans, Floats]:
    """
    At most `limit` spans (n, 2), as first and last token, best first, with log-probabilities (n,).

    `starts` (tokens,) is log P(start); `ends` (tokens, lengths) is log P(end | start), where the
    column is the number of tokens after the start. Impossible ones are -inf and never returned.
    With "beam", there are `limit // beam` starts with `beam` ends each. Spans of equal probability
    keep the order of the text. `minor` (tokens,) marks articles and punctuation: of spans that
    differ only by such tokens at their ends, the most probable is returned.
    """
    if limit < 1 or beam < 1:
        raise InputError(f"limit and beam must be at least 1, got {limit} and {beam}.")
    if decoding == "joint":
        scores = starts[:, None] + ends
    elif decoding == "beam":
        scores = _beam_scores(starts, ends, max(1, limit // beam), beam)
    else:
        raise UnknownNameError("decoding", decoding, DECODINGS)
    flat = scores.ravel()
    best = _top_positions(flat, limit if minor is None else _MOST_VARIANTS * limit)
    best = best[np.isfinite(flat[best])]
    first, length = np.divmod(best, max(1, ends.shape[1]))
    spans = np.stack([first, first + length], 1).astype(np.int32)
    if minor is not None:
        kept = _without_variants(spans, minor)[:limit]
        spans, best = spans[kept], best[kept]
    return spans, flat[best].astype(np.float32)


def _without_variants(spans: TokenSpans, minor: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The positions of the first span of each group that differs only by minor tokens."""
    tokens = len(minor)
    places = np.arange(tokens)
    first = np.minimum.accumulate(np.where(minor, tokens, places)[::-1])[::-1]
    last = np.maximum.accumulate(np.where(minor, -1, places))
    key = first[spans[:, 0]].astype(np.int64) * tokens + last[spans[:, 1]]
    nothing = first[spans[:, 0]] > last[spans[:, 1]]  # all of its tokens are minor
    _, positions = np.unique(np.where(nothing, -1 - np.arange(len(key)), key), return_index=True)
    return np.sort(positions)


def _beam_scores(starts: Floats, ends: Floats, count: int, beam: int) -> Floats:
    """Joint scores of the spans in the beam, -inf for all others."""
    scores = np.full(ends.shape, -np.inf, np.float32)
    for start in _top_positions(starts, count):
        best_ends = _top_positions(ends[start], beam)
        scores[start, best_ends] = starts[start] + ends[start, best_ends]
    return scores


def _top_positions(values: Floats, count: int) -> NDArray[np.int64]:
    """Positions of the highest values, highest first; equal ones in order."""
    if count < len(values):  # sorting all spans would take longer than scoring them
        threshold = np.partition(values, len(values) - count)[len(values) - count]
        positions = np.flatnonzero(values >= threshold)
    else:
        positions = np.arange(len(values))
    order = np.argsort(-values[positions], kind="stable")[:count]
    return positions[order]
