"""What stands on the encoder: candidates, vectors, words. Training has the same in torch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..models.products import product
from .windows import LONGEST, Window

__all__ = ["expected_words", "linear", "own_words", "phrase_words", "span_tables"]

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]
_STARTS = 200
"""Starts whose ends are scored, the likeliest: ends cost most of what the extractor does."""


def linear(weights: Weights, name: str, states: Floats) -> Floats:
    """States (…, inputs) times the layer's weights, plus its bias where it has one."""
    weight, bias = weights[f"{name}.weight"], weights.get(f"{name}.bias")
    found = product(states.reshape(-1, states.shape[-1]), weight.T)
    found = found if bias is None else found + bias
    return found.reshape(*states.shape[:-1], len(weight))


def span_tables(weights: Weights, states: Floats, window: Window) -> tuple[Floats, Floats]:
    """Log P(start) and log P(end | start) of a window, as `decode` takes them."""
    scores = linear(weights, "spans.start", states)[:, 0]
    starts = _log_softmax(np.where(window.opens, scores, -np.inf))
    ends = np.full((len(window), LONGEST), -np.inf, np.float32)
    likely = np.argsort(-starts, kind="stable")[:_STARTS]
    likely = likely[np.isfinite(starts[likely])]
    first = linear(weights, "spans.first", states[likely])
    last = linear(weights, "spans.last", states)
    places = likely[:, None] + np.arange(LONGEST)  # (starts, LONGEST)
    barred = places >= len(window)
    places = np.minimum(places, len(window) - 1)
    joined = first[:, None] + last[places] + weights["spans.length.weight"]
    found = linear(weights, "spans.join", np.maximum(joined, 0))[..., 0]
    found[barred | ~window.closes[places]] = -np.inf
    ends[likely] = _log_softmax(found)
    return starts, ends


def phrase_words(weights: Weights, joined: Floats, states: Floats) -> Floats:
    """Weights (phrases, tokens) of the window's words around each phrase."""
    seek = linear(weights, "lexical.seek", joined)
    key = linear(weights, "lexical.key", states)
    match = seek @ key.T / np.float32(np.sqrt(key.shape[1])) + weights["lexical.shift"]
    found: Floats = np.log1p(np.maximum(match, 0))
    found[:, [0, -1]] = 0  # special tokens are no words
    return found


def own_words(weights: Weights, states: Floats) -> Floats:
    """Weights (tokens,) of a question's own words."""
    scores = linear(weights, "lexical.own", states)[:, 0]
    found: Floats = np.logaddexp(np.float32(0), scores)
    found[[0, -1]] = 0
    return found


def expected_words(weights: Weights, states: Floats, vectors: Floats) -> Floats:
    """Weights (words,) of words with these vectors beside an answer to the question."""
    seeks = linear(weights, "lexical.expand", states)
    seeks[[0, -1]] = 0
    near = (seeks @ vectors.T).max(0) + weights["lexical.threshold"]
    found: Floats = np.log1p(np.maximum(near, 0))
    return found


def _log_softmax(scores: Floats) -> Floats:
    """Along the last axis; what is barred throughout stays so."""
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(scores - top).sum(-1, keepdims=True))
    return np.where(np.isfinite(scores), scores - top - total, -np.inf).astype(np.float32)
