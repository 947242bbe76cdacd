"""What stands on the encoder: candidates, vectors, words. Training has the same in torch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.onnx_graph import Graph
from ..runtime.encoder import open_session
from .windows import LONGEST, Window

__all__ = ["Heads", "expected_words", "own_words", "phrase_words", "span_tables"]

Floats = NDArray[np.float32]
_STARTS = 200
"""Starts whose ends are scored, the likeliest: ends cost most of what the extractor does."""


class Heads:
    """
    The weights, and products with them on the thread that asks.

    numpy would have them done by BLAS, whose threads wait busily for more between two products and
    keep the cores from those who encode other windows.
    """

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        self._weights = weights
        self._turned = {
            name.removesuffix(".weight"): np.ascontiguousarray(value.T)
            for name, value in weights.items()
            if name.endswith(".weight")
        }

    def __getitem__(self, name: str) -> Floats:
        return self._weights[name]

    def linear(self, name: str, states: Floats) -> Floats:
        """States (…, inputs) times the layer's weights, plus its bias where it has one."""
        found = self.product(states.reshape(-1, states.shape[-1]), self._turned[name])
        bias = self._weights.get(f"{name}.bias")
        found = found if bias is None else found + bias
        return found.reshape(*states.shape[:-1], found.shape[-1])

    def product(self, rows: Floats, columns: Floats) -> Floats:
        """(n, inputs) by (inputs, m)."""
        found: Floats = self._product.run(None, {"rows": rows, "columns": columns})[0]
        return found

    @cached_property
    def _product(self) -> Any:
        graph = Graph()
        rows = graph.input("rows", "float32", ("n", "inputs"))
        columns = graph.input("columns", "float32", ("inputs", "m"))
        graph.output(graph.node("MatMul", rows, columns), "found", "float32", ("n", "m"))
        return open_session(graph.to_bytes())


def span_tables(heads: Heads, states: Floats, window: Window) -> tuple[Floats, Floats]:
    """Log P(start) and log P(end | start) of a window, as `decode` takes them."""
    scores = heads.linear("spans.start", states)[:, 0]
    starts = _log_softmax(np.where(window.opens, scores, -np.inf))
    ends = np.full((len(window), LONGEST), -np.inf, np.float32)
    likely = np.argsort(-starts, kind="stable")[:_STARTS]
    likely = likely[np.isfinite(starts[likely])]
    first = heads.linear("spans.first", states[likely])
    last = heads.linear("spans.last", states)
    places = likely[:, None] + np.arange(LONGEST)  # (starts, LONGEST)
    barred = places >= len(window)
    places = np.minimum(places, len(window) - 1)
    joined = first[:, None] + last[places] + heads["spans.length.weight"]
    found = heads.linear("spans.join", np.maximum(joined, 0))[..., 0]
    found[barred | ~window.closes[places]] = -np.inf
    ends[likely] = _log_softmax(found)
    return starts, ends


def phrase_words(heads: Heads, joined: Floats, states: Floats) -> Floats:
    """Weights (phrases, tokens) of the window's words around each phrase."""
    seek = heads.linear("lexical.seek", joined)
    key = heads.linear("lexical.key", states)
    match = heads.product(seek, np.ascontiguousarray(key.T))
    match = match / np.float32(np.sqrt(key.shape[1])) + heads["lexical.shift"]
    found: Floats = np.log1p(np.maximum(match, 0))
    found[:, [0, -1]] = 0  # special tokens are no words
    return found


def own_words(heads: Heads, states: Floats) -> Floats:
    """Weights (tokens,) of a question's own words."""
    scores = heads.linear("lexical.own", states)[:, 0]
    found: Floats = np.logaddexp(np.float32(0), scores)
    found[[0, -1]] = 0
    return found


def expected_words(heads: Heads, states: Floats, vectors: Floats) -> Floats:
    """Weights (words,) of words with these vectors beside an answer to the question."""
    seeks = heads.linear("lexical.expand", states)
    seeks[[0, -1]] = 0
    near = heads.product(vectors, np.ascontiguousarray(seeks.T)).max(1) + heads["lexical.threshold"]
    found: Floats = np.log1p(np.maximum(near, 0))
    return found


def _log_softmax(scores: Floats) -> Floats:
    """Along the last axis; what is barred throughout stays so."""
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(scores - top).sum(-1, keepdims=True))
    return np.where(np.isfinite(scores), scores - top - total, -np.inf).astype(np.float32)
