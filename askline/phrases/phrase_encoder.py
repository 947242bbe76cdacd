"""
The encoder of a phrase model: hidden states of a text, and of marker tokens that attend to it.

A text is encoded once, and the keys and values of its layers are kept. Markers are encoded later
with this key/value cache: they attend to the text, and the text does not attend to them. So the
candidates can be chosen from the states of the text before their markers are encoded, and the text
is never encoded twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine import graphs
from ..engine.encoder import create_session
from ..engine.graphs import Tensors
from ..engine.quantization import unpack_int4
from ..models.encoder_config import EncoderConfig

__all__ = [
    "KeyValueCache",
    "PhraseEncoder",
    "marker_attention_mask",
]

Floats = NDArray[np.float32]
Ints = NDArray[np.integer[Any]]
KeyValueCache = dict[str, Floats]
"""Keys and values (1, tokens, hidden) of a text, by the names of the graph's inputs."""
_MASKED = np.float32(-1e9)


@dataclass(eq=False)
class PhraseEncoder:
    """Several threads may use one encoder; each call runs on the calling thread."""

    config: EncoderConfig
    tensors: Tensors = field(repr=False)

    def encode(self, tokens: Ints, *, keep: bool = False) -> tuple[Floats, KeyValueCache]:
        """States (tokens, hidden) of one text; with `keep`, its key/value cache, otherwise {}."""
        embedded = self.embed(tokens, np.arange(len(tokens)), 0)
        names = ["output_states", *(self._cache_names if keep else ())]
        states, *cached = self._text_session.run(names, {"states": embedded})
        return states[0], dict(zip(names[1:], cached, strict=True))

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
        states += tensors["positions.weight"][positions + config.first_position]
        states += tensors["kinds.weight"][min(token_type, config.kinds - 1)]
        states -= states.mean(-1, keepdims=True)
        states /= np.sqrt(np.square(states).mean(-1, keepdims=True) + config.norm_epsilon)
        states *= tensors["norm.weight"]
        states += tensors["norm.bias"]
        return states[None]

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
