"""
What stands on the encoder: candidates, vectors, words. Training has the same in torch.

A text's states, and those of markers that look at it, on the cascade's engine.

A text is encoded once, and what its layers looked at is kept. Markers are encoded later against it:
they look at the text, and the text does not look at them. So candidates can be chosen from the
text's own states before their markers are encoded, and the text is never encoded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine import graphs
from ..engine.encoder import create_session
from ..engine.graphs import Tensors
from ..engine.onnx_writer import OnnxGraph
from ..engine.quantization import unpack_int4
from ..models.encoder_config import EncoderConfig
from .tokenization import MAX_PHRASE_TOKENS, TokenWindow

__all__ = [
    "KeyValueCache",
    "PhraseEncoder",
    "PhraseHeads",
    "context_word_weights",
    "expanded_word_weights",
    "marker_attention_mask",
    "question_word_weights",
    "span_log_probabilities",
]

Floats = NDArray[np.float32]
_STARTS = 200
"""Starts whose ends are scored, the likeliest: ends cost most of what the extractor does."""


class PhraseHeads:
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
        graph = OnnxGraph()
        rows = graph.input("rows", "float32", ("n", "inputs"))
        columns = graph.input("columns", "float32", ("inputs", "m"))
        graph.output(graph.node("MatMul", rows, columns), "found", "float32", ("n", "m"))
        return create_session(graph.to_bytes())


def span_log_probabilities(
    heads: PhraseHeads, states: Floats, window: TokenWindow
) -> tuple[Floats, Floats]:
    """Log P(start) and log P(end | start) of a window, as `decode` takes them."""
    scores = heads.linear("spans.start", states)[:, 0]
    starts = _log_softmax(np.where(window.may_start, scores, -np.inf))
    ends = np.full((len(window), MAX_PHRASE_TOKENS), -np.inf, np.float32)
    likely = np.argsort(-starts, kind="stable")[:_STARTS]
    likely = likely[np.isfinite(starts[likely])]
    first = heads.linear("spans.first", states[likely])
    last = heads.linear("spans.last", states)
    places = likely[:, None] + np.arange(MAX_PHRASE_TOKENS)  # (starts, MAX_PHRASE_TOKENS)
    barred = places >= len(window)
    places = np.minimum(places, len(window) - 1)
    joined = first[:, None] + last[places] + heads["spans.length.weight"]
    found = heads.linear("spans.join", np.maximum(joined, 0))[..., 0]
    found[barred | ~window.may_end[places]] = -np.inf
    ends[likely] = _log_softmax(found)
    return starts, ends


def context_word_weights(heads: PhraseHeads, joined: Floats, states: Floats) -> Floats:
    """Weights (phrases, tokens) of the window's words around each phrase."""
    seek = heads.linear("lexical.seek", joined)
    key = heads.linear("lexical.key", states)
    match = heads.product(seek, np.ascontiguousarray(key.T))
    match = match / np.float32(np.sqrt(key.shape[1])) + heads["lexical.shift"]
    found: Floats = np.log1p(np.maximum(match, 0))
    found[:, [0, -1]] = 0  # special tokens are no words
    return found


def question_word_weights(heads: PhraseHeads, states: Floats) -> Floats:
    """Weights (tokens,) of a question's own words."""
    scores = heads.linear("lexical.own", states)[:, 0]
    found: Floats = np.logaddexp(np.float32(0), scores)
    found[[0, -1]] = 0
    return found


def expanded_word_weights(heads: PhraseHeads, states: Floats, vectors: Floats) -> Floats:
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


Ints = NDArray[np.integer[Any]]
KeyValueCache = dict[str, Floats]
"""Keys and values (1, tokens, width) of a text, by the names of the graph's inputs."""
_BARRED = np.float32(-1e9)


@dataclass(eq=False)
class PhraseEncoder:
    """Any number of threads may use one; each call runs on the thread that asks."""

    config: EncoderConfig
    tensors: Tensors = field(repr=False)

    def encode(self, tokens: Ints, *, keep: bool = False) -> tuple[Floats, KeyValueCache]:
        """States (tokens, width) of one text; `keep` remembers what markers will look at."""
        states = self.embed(tokens, np.arange(len(tokens)), 0)
        names = ["output_states", *(self._seen if keep else ())]
        risen, *seen = self._watched.run(names, {"states": states})
        return risen[0], dict(zip(names[1:], seen, strict=True))

    def encode_markers(self, tokens: Ints, places: Ints, sight: KeyValueCache) -> Floats:
        """
        States (n, 2, width) of pairs of markers (n, 2) at these places of a text.

        Each looks at the text and at its pair, as in training.
        """
        states = self.embed(tokens.ravel(), places.ravel(), 1)
        seen = sight["key.0"].shape[1]
        given = {
            "states": states,
            "attention_mask": marker_attention_mask(len(tokens), seen),
            **sight,
        }
        risen: Floats = self._markers.run(None, given)[0]
        return risen.reshape(len(tokens), 2, -1)

    def embed(self, tokens: Ints, places: Ints, kind: int) -> Floats:
        """
        (tokens,) → (1, tokens, width) before the first layer.

        Not by a graph: it would hold the table of words, of which a text needs a few rows.
        """
        shape, tensors = self.config, self.tensors
        states = self.word_vectors(tokens)
        states += tensors["positions.weight"][places + shape.first_position]
        states += tensors["kinds.weight"][min(kind, shape.kinds - 1)]
        states -= states.mean(-1, keepdims=True)
        states /= np.sqrt(np.square(states).mean(-1, keepdims=True) + shape.norm_epsilon)
        states *= tensors["norm.weight"]
        states += tensors["norm.bias"]
        return states[None]

    def word_vectors(self, words: Ints) -> Floats:
        """The embeddings of these words, out of context."""
        rows = self.tensors["words.weight"][words]
        if "words.scale" not in self.tensors:
            return rows.astype(np.float32)
        scale = self.tensors["words.scale"][words]
        if rows.dtype == np.uint8:
            return unpack_int4(rows, scale)
        found: Floats = rows * scale.astype(np.float32)[:, None]
        return found

    @property
    def _seen(self) -> list[str]:
        layers = range(self.config.layers)
        return [f"{name}.{layer}" for layer in layers for name in ("key", "value")]

    def _session(self, graph: Callable[[EncoderConfig, Tensors], bytes]) -> Any:
        return create_session(graph(self.config, self.tensors))

    @cached_property
    def _watched(self) -> Any:
        return self._session(graphs.key_value_graph)

    @cached_property
    def _markers(self) -> Any:
        return self._session(graphs.marker_graph)


def marker_attention_mask(pairs: int, seen: int) -> Floats:
    """(1, 1, markers, seen + markers): 0 for the text and for a marker's own pair, barred else."""
    twins = np.arange(2 * pairs) // 2
    own = np.where(twins[:, None] == twins, np.float32(0), _BARRED)
    sight = np.concatenate([np.zeros((2 * pairs, seen), np.float32), own], 1)
    return sight[None, None]
