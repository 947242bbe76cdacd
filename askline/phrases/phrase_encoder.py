"""
The encoder of a phrase model, its heads, and the choice of spans from what the heads score.

A text is encoded once, and the keys and values of its layers are kept. Markers are encoded later
with this key/value cache: they attend to the text, and the text does not attend to them. So the
candidates can be chosen from the states of the text before their markers are encoded, and the text
is never encoded twice. Training has the same layers in torch
(`training/phrases/phrase_networks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..engine import graphs
from ..engine.graphs import Tensors
from ..engine.onnx_writer import OnnxGraph
from ..engine.quantization import unpack_int4
from ..engine.sessions import create_session
from ..errors import InputError, UnknownNameError
from ..models.encoder_config import EncoderConfig
from .tokenization import MAX_PHRASE_TOKENS, TokenWindow

__all__ = [
    "DECODINGS",
    "Decoding",
    "KeyValueCache",
    "PhraseEncoder",
    "PhraseHeads",
    "decode_spans",
    "marker_attention_mask",
]

Floats = NDArray[np.float32]
_MAX_STARTS = 100
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
        joined = last[end_tokens]  # (starts, lengths, hidden): large, so it is changed in place
        joined += first[:, None]
        joined += self._weights["spans.length.weight"]
        np.maximum(joined, 0, out=joined)
        end_scores = self.linear("spans.join", joined)[..., 0]
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
    total = np.exp(scores - top).sum(-1, keepdims=True)
    log_total = np.log(np.where(total > 0, total, 1))  # -inf minus -inf would not be a number
    return (scores - top - log_total).astype(np.float32)


Decoding = Literal["beam", "joint"]
DECODINGS: tuple[str, ...] = get_args(Decoding)
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

    There are two decodings: the beam search of the paper (the best starts, then the best ends of
    each) and the best spans by the joint probability P(start) · P(end | start). The second does not
    spend candidates on a second end where one end is nearly certain, and finds more answers with
    the same number of candidates (research/notes/phrases.md).

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


Ints = NDArray[np.integer[Any]]
KeyValueCache = dict[str, Floats]
"""Keys and values (1, tokens, hidden) of a text, by the names of the graph's inputs."""
_MASKED = np.float32(-1e9)


@dataclass(eq=False)
class PhraseEncoder:
    """Several threads may use one encoder; each call runs on the calling thread."""

    config: EncoderConfig
    tensors: Tensors = field(repr=False)

    @property
    def is_int8(self) -> bool:
        """Whether the dense layers are computed in int8, with exact sums."""
        return bool(self.tensors["layers.0.inner.weight"].dtype == np.int8)

    def encode(self, tokens: Ints, *, keep: bool = False) -> tuple[Floats, KeyValueCache]:
        """States (tokens, hidden) of one text; with `keep`, its key/value cache, otherwise {}."""
        if not keep:
            return self.encode_batch(tokens[None])[0], {}
        embedded = self.embed(tokens, np.arange(len(tokens)), 0)
        names = ["output_states", *self._cache_names]
        states, *cached = self._key_value_session.run(names, {"states": embedded})
        return states[0], dict(zip(names[1:], cached, strict=True))

    def encode_batch(self, tokens: Ints) -> Floats:
        """
        States (texts, tokens, hidden) of several texts of the same length.

        If the weights are int8, the states of a text are the same to the byte whatever the other
        texts are. In float, the order of a sum may depend on the number of rows.
        """
        padded = self.padded(tokens)
        texts, length = padded.shape
        embedded = self.embed(padded.ravel(), np.tile(np.arange(length), texts), 0)
        inputs = {"states": embedded.reshape(texts, length, -1)}
        states: Floats = self._text_session.run(None, inputs)[0]
        return states[:, : tokens.shape[1]]

    def padded(self, tokens: Ints) -> Ints:
        """Texts (texts, tokens) with their last token repeated until all blocks are of one size."""
        length = tokens.shape[1]
        blocks = -(-length // (self.config.block or length))
        return np.pad(tokens, ((0, 0), (0, -length % blocks)), "edge")

    def encode_markers(self, tokens: Ints, positions: Ints, cache: KeyValueCache) -> Floats:
        """
        States (n, 2, hidden) of pairs of markers (n, 2) at these positions of a text.

        Each marker attends to the text and to its own pair, as in training.
        """
        inputs = {
            "states": self.embed(tokens.ravel(), positions.ravel(), 1),
            "attention_mask": marker_attention_mask(len(tokens), cache["key.0"].shape[1]),
            **cache,
        }
        states: Floats = self._marker_session.run(None, inputs)[0]
        return states.reshape(len(tokens), 2, -1)

    def embed(self, tokens: Ints, positions: Ints, token_type: int) -> Floats:
        """
        Embed (tokens,) as (1, tokens, hidden), the input of the first layer.

        In numpy, because a graph would contain the whole embedding table, of which a text needs a
        few rows.
        """
        config, tensors = self.config, self.tensors
        states = self.word_vectors(tokens)
        # Tokens that fill the last block may be behind the last position.
        places = np.minimum(positions + config.first_position, config.positions - 1)
        states += self._positions[places]
        states += tensors["kinds.weight"][min(token_type, config.kinds - 1)]
        states -= states.mean(-1, keepdims=True)
        states /= np.sqrt(np.square(states).mean(-1, keepdims=True) + config.norm_epsilon)
        states *= tensors["norm.weight"]
        states += tensors["norm.bias"]
        return states[None]

    @cached_property
    def _positions(self) -> Floats:
        return self.tensors["positions.weight"].astype(np.float32)

    def word_vectors(self, tokens: Ints) -> Floats:
        """The rows of the embedding table for these tokens, (tokens, hidden)."""
        rows = self.tensors["words.weight"][tokens]
        if "words.scale" not in self.tensors:
            return rows.astype(np.float32)
        scale = self.tensors["words.scale"][tokens]
        if rows.dtype == np.uint8:
            return unpack_int4(rows, scale)
        vectors: Floats = rows * scale.astype(np.float32)[:, None]
        return vectors

    @property
    def _cache_names(self) -> list[str]:
        layers = range(self.config.layers)
        return [f"{name}.{layer}" for layer in layers for name in ("key", "value")]

    def _create_session(self, graph: Callable[[EncoderConfig, Tensors], bytes]) -> Any:
        return create_session(graph(self.config, self.tensors))

    @cached_property
    def _text_session(self) -> Any:
        layers = self.config.layers
        return create_session(graphs.layers_graph(self.config, self.tensors, 0, layers))

    @cached_property
    def _key_value_session(self) -> Any:
        return self._create_session(graphs.key_value_graph)

    @cached_property
    def _marker_session(self) -> Any:
        return self._create_session(graphs.marker_graph)


def marker_attention_mask(pairs: int, text_tokens: int) -> Floats:
    """(1, 1, markers, text_tokens + markers): 0 for the text and the own pair, else masked."""
    pair_of_marker = np.arange(2 * pairs) // 2
    own_pair = np.where(pair_of_marker[:, None] == pair_of_marker, np.float32(0), _MASKED)
    mask = np.concatenate([np.zeros((2 * pairs, text_tokens), np.float32), own_pair], 1)
    return mask[None, None]
