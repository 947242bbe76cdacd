"""
A BERT encoder in numpy, which can take up where it left off.

It encodes a text, keeps what its layers looked at, and later encodes markers that look at the text
while the text does not look at them. So candidates can be chosen from the text's own states before
their markers are encoded, and the text is never encoded twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bert", "BertShape", "Sight"]

Floats = NDArray[np.float32]
Ints = NDArray[np.integer]
Sight = list[tuple[Floats, Floats]]
"""Keys and values (heads, tokens, width of a head) of a text, layer by layer."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes that weights must fit."""

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int = 2
    first_position: int = 0
    """RoBERTa and its kin count positions from behind their padding."""
    norm_epsilon: float = 1e-12

    def weights(self) -> dict[str, tuple[int, ...]]:
        """Name → shape, named as Hugging Face names them."""
        width, inner = self.width, self.inner
        shapes: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (self.vocabulary, width),
            "embeddings.position_embeddings.weight": (self.positions, width),
            "embeddings.token_type_embeddings.weight": (self.types, width),
            **_norm("embeddings.LayerNorm", width),
        }
        for layer in range(self.layers):
            at = f"encoder.layer.{layer}"
            for name in ("self.query", "self.key", "self.value", "output.dense"):
                shapes |= _linear(f"{at}.attention.{name}", width, width)
            shapes |= _norm(f"{at}.attention.output.LayerNorm", width)
            shapes |= _linear(f"{at}.intermediate.dense", inner, width)
            shapes |= _linear(f"{at}.output.dense", width, inner)
            shapes |= _norm(f"{at}.output.LayerNorm", width)
        return shapes


def _linear(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


class Bert:
    """Weights and nothing else: any number of threads may encode at once."""

    def __init__(self, shape: BertShape, weights: Mapping[str, Floats]) -> None:
        self.shape, self._weights = shape, weights

    def encode(self, tokens: Ints, *, keep: bool = False) -> tuple[Floats, Sight]:
        """States (tokens, width) of one text; `keep` remembers what markers will look at."""
        states = self._embed(tokens, np.arange(len(tokens)), 0)
        sight: Sight = []
        for layer in range(self.shape.layers):
            query, key, value = self._projections(layer, states)
            if keep:
                sight.append((key, value))
            mixed = _softmax(query @ key.transpose(0, 2, 1)) @ value
            states = self._rest(layer, states, mixed)
        return states, sight

    def encode_markers(self, tokens: Ints, places: Ints, sight: Sight) -> Floats:
        """
        States (n, 2, width) of pairs of markers (n, 2) at these places of a text.

        Each looks at the text and at its pair, as in training.
        """
        count = len(tokens)
        states = self._embed(tokens.ravel(), places.ravel(), 1)
        for layer, (seen_keys, seen_values) in enumerate(sight):
            query, key, value = self._projections(layer, states)
            far = query @ seen_keys.transpose(0, 2, 1)  # (heads, 2n, tokens)
            pairs = (len(query), count, 2, -1)
            near = query.reshape(pairs) @ key.reshape(pairs).transpose(0, 1, 3, 2)
            shares = _softmax(np.concatenate([far, near.reshape(*far.shape[:2], 2)], -1))
            beside = shares[..., -2:].reshape(len(query), count, 2, 2) @ value.reshape(pairs)
            mixed = shares[..., :-2] @ seen_values + beside.reshape(value.shape)
            states = self._rest(layer, states, mixed)
        return states.reshape(count, 2, -1)

    def word_vectors(self, tokens: Ints) -> Floats:
        """The embeddings of these words, out of context."""
        return self._weights["embeddings.word_embeddings.weight"][tokens]

    def _embed(self, tokens: Ints, places: Ints, kind: int) -> Floats:
        weights, prefix = self._weights, "embeddings."
        kinds = weights[f"{prefix}token_type_embeddings.weight"]
        found = (
            weights[f"{prefix}word_embeddings.weight"][tokens]
            + weights[f"{prefix}position_embeddings.weight"][places + self.shape.first_position]
            + kinds[min(kind, len(kinds) - 1)]
        )
        return self._normalised(f"{prefix}LayerNorm", found)

    def _projections(self, layer: int, states: Floats) -> tuple[Floats, Floats, Floats]:
        """Queries (already scaled), keys and values, (heads, tokens, width of a head) each."""
        heads, at = self.shape.heads, f"encoder.layer.{layer}.attention.self."
        size = self.shape.width // heads
        parts = [
            self._linear(at + name, states).reshape(len(states), heads, size).transpose(1, 0, 2)
            for name in ("query", "key", "value")
        ]
        return parts[0] / np.float32(math.sqrt(size)), parts[1], parts[2]

    def _rest(self, layer: int, states: Floats, mixed: Floats) -> Floats:
        """What follows attention in a layer."""
        at = f"encoder.layer.{layer}."
        joined = mixed.transpose(1, 0, 2).reshape(states.shape)
        seen = self._linear(f"{at}attention.output.dense", joined)
        states = self._normalised(f"{at}attention.output.LayerNorm", states + seen)
        inner = _gelu(self._linear(f"{at}intermediate.dense", states))
        return self._normalised(
            f"{at}output.LayerNorm", states + self._linear(f"{at}output.dense", inner)
        )

    def _linear(self, name: str, states: Floats) -> Floats:
        found: Floats = states @ self._weights[f"{name}.weight"].T
        found += self._weights[f"{name}.bias"]
        return found

    def _normalised(self, name: str, states: Floats) -> Floats:
        centred = states - states.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + self.shape.norm_epsilon)
        scaled = centred / spread * self._weights[f"{name}.weight"]
        found: Floats = (scaled + self._weights[f"{name}.bias"]).astype(np.float32, copy=False)
        return found


def _softmax(scores: Floats) -> Floats:
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


def _gelu(values: Floats) -> Floats:
    """
    X · Φ(x), with erf by Abramowitz and Stegun's 7.1.26, which is right to 2e-7.

    numpy has no erf, and scipy is no part of the base install.
    """
    size = np.abs(values) * np.float32(math.sqrt(0.5))
    slope = 1 / (1 + np.float32(0.3275911) * size)
    tail = np.full_like(size, 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail *= slope
        tail += np.float32(factor)
    tail *= slope * np.exp(-size * size)  # 1 - erf(|x| / √2)
    found: Floats = np.float32(0.5) * (values + np.abs(values) * (1 - tail))
    return found
