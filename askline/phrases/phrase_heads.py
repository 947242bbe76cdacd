"""
The heads of a phrase model: layers on the encoder's states that score spans and words.

Training has the same layers in torch (`training/phrases/phrase_network.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.encoder import create_session
from ..engine.onnx_writer import OnnxGraph
from .tokenization import MAX_PHRASE_TOKENS, TokenWindow

__all__ = ["PhraseHeads"]

Floats = NDArray[np.float32]
_MAX_STARTS = 200
"""Starts whose ends are scored, the most probable ones: the ends take most of the time."""


class PhraseHeads:
    """
    The weights of the heads, and matrix products with them on the calling thread.

    The products run in ONNX: the BLAS threads of numpy spin between two products and keep the cores
    from threads that encode other windows.
    """

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        self._weights = weights
        self._transposed = {
            name.removesuffix(".weight"): np.ascontiguousarray(value.T)
            for name, value in weights.items()
            if name.endswith(".weight")
        }

    def linear(self, name: str, states: Floats) -> Floats:
        """States (..., inputs) times the weights of a layer, plus its bias if it has one."""
        product = self._multiply(states.reshape(-1, states.shape[-1]), self._transposed[name])
        bias = self._weights.get(f"{name}.bias")
        product = product if bias is None else product + bias
        return product.reshape(*states.shape[:-1], product.shape[-1])

    def span_log_probabilities(self, states: Floats, window: TokenWindow) -> tuple[Floats, Floats]:
        """Log P(start) (tokens,) and log P(end | start) (tokens, lengths), for `decode_spans`."""
        scores = self.linear("spans.start", states)[:, 0]
        starts = _log_softmax(np.where(window.may_start, scores, -np.inf))
        ends = np.full((len(window), MAX_PHRASE_TOKENS), -np.inf, np.float32)
        likely = np.argsort(-starts, kind="stable")[:_MAX_STARTS]
        likely = likely[np.isfinite(starts[likely])]
        first = self.linear("spans.first", states[likely])  # (starts, hidden)
        last = self.linear("spans.last", states)  # (tokens, hidden)
        end_tokens = likely[:, None] + np.arange(MAX_PHRASE_TOKENS)  # (starts, lengths)
        outside = end_tokens >= len(window)
        end_tokens = np.minimum(end_tokens, len(window) - 1)
        joined = first[:, None] + last[end_tokens] + self._weights["spans.length.weight"]
        end_scores = self.linear("spans.join", np.maximum(joined, 0))[..., 0]
        end_scores[outside | ~window.may_end[end_tokens]] = -np.inf
        ends[likely] = _log_softmax(end_scores)
        return starts, ends

    def context_word_weights(self, phrase_states: Floats, states: Floats) -> Floats:
        """Weights (phrases, tokens) of the words around each phrase; `states` is the window."""
        query = self.linear("lexical.seek", phrase_states)
        key = self.linear("lexical.key", states)
        match = self._multiply(query, np.ascontiguousarray(key.T))
        match = match / np.float32(np.sqrt(key.shape[1])) + self._weights["lexical.shift"]
        weights: Floats = np.log1p(np.maximum(match, 0))
        weights[:, [0, -1]] = 0  # special tokens are not words
        return weights

    def question_word_weights(self, states: Floats) -> Floats:
        """Weights (tokens,) of the words in a question."""
        scores = self.linear("lexical.own", states)[:, 0]
        weights: Floats = np.logaddexp(np.float32(0), scores)
        weights[[0, -1]] = 0
        return weights

    def expanded_word_weights(self, states: Floats, embeddings: Floats) -> Floats:
        """Weights (words,) of words that are expected near an answer to the question."""
        queries = self.linear("lexical.expand", states)
        queries[[0, -1]] = 0
        products = self._multiply(embeddings, np.ascontiguousarray(queries.T))
        match = products.max(1) + self._weights["lexical.threshold"]
        weights: Floats = np.log1p(np.maximum(match, 0))
        return weights

    def _multiply(self, rows: Floats, columns: Floats) -> Floats:
        """(n, inputs) by (inputs, m)."""
        product: Floats = self._matmul.run(None, {"rows": rows, "columns": columns})[0]
        return product

    @cached_property
    def _matmul(self) -> Any:
        graph = OnnxGraph()
        rows = graph.input("rows", "float32", ("n", "inputs"))
        columns = graph.input("columns", "float32", ("inputs", "m"))
        graph.output(graph.node("MatMul", rows, columns), "product", "float32", ("n", "m"))
        return create_session(graph.to_bytes())


def _log_softmax(scores: Floats) -> Floats:
    """Along the last axis; rows that are -inf throughout stay so."""
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(scores - top).sum(-1, keepdims=True))
    return np.where(np.isfinite(scores), scores - top - total, -np.inf).astype(np.float32)
