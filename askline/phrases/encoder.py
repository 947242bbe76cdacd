"""
A text's states, and those of markers that look at it, on the cascade's engine.

A text is encoded once, and what its layers looked at is kept. Markers are encoded later against it:
they look at the text, and the text does not look at them. So candidates can be chosen from the
text's own states before their markers are encoded, and the text is never encoded twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.nibbles import from_nibbles
from ..runtime import graphs
from ..runtime.encoder import open_session
from ..runtime.sheet import Layout, Tensors

__all__ = ["PhraseEncoder", "Sight", "pairs_apart"]

Floats = NDArray[np.float32]
Ints = NDArray[np.integer[Any]]
Sight = dict[str, Floats]
"""Keys and values (1, tokens, width) of a text, by the names of the graph's inputs."""
_BARRED = np.float32(-1e9)


@dataclass(eq=False)
class PhraseEncoder:
    """Any number of threads may use one; each call runs on the thread that asks."""

    layout: Layout
    tensors: Tensors = field(repr=False)

    def encode(self, tokens: Ints, *, keep: bool = False) -> tuple[Floats, Sight]:
        """States (tokens, width) of one text; `keep` remembers what markers will look at."""
        states = self.embed(tokens, np.arange(len(tokens)), 0)
        names = ["risen", *(self._seen if keep else ())]
        risen, *seen = self._watched.run(names, {"states": states})
        return risen[0], dict(zip(names[1:], seen, strict=True))

    def encode_markers(self, tokens: Ints, places: Ints, sight: Sight) -> Floats:
        """
        States (n, 2, width) of pairs of markers (n, 2) at these places of a text.

        Each looks at the text and at its pair, as in training.
        """
        states = self.embed(tokens.ravel(), places.ravel(), 1)
        seen = sight["key.0"].shape[1]
        given = {"states": states, "sight": pairs_apart(len(tokens), seen), **sight}
        risen: Floats = self._markers.run(None, given)[0]
        return risen.reshape(len(tokens), 2, -1)

    def embed(self, tokens: Ints, places: Ints, kind: int) -> Floats:
        """
        (tokens,) → (1, tokens, width) before the first layer.

        Not by a graph: it would hold the table of words, of which a text needs a few rows.
        """
        shape, tensors = self.layout.encoder, self.tensors
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
            return from_nibbles(rows, scale)
        found: Floats = rows * scale.astype(np.float32)[:, None]
        return found

    @property
    def _seen(self) -> list[str]:
        layers = range(self.layout.encoder.layers)
        return [f"{name}.{layer}" for layer in layers for name in ("key", "value")]

    def _session(self, graph: Callable[[Layout, Tensors], bytes]) -> Any:
        return open_session(graph(self.layout, self.tensors))

    @cached_property
    def _watched(self) -> Any:
        return self._session(graphs.watched)

    @cached_property
    def _markers(self) -> Any:
        return self._session(graphs.markers)


def pairs_apart(pairs: int, seen: int) -> Floats:
    """(1, 1, markers, seen + markers): 0 for the text and for a marker's own pair, barred else."""
    twins = np.arange(2 * pairs) // 2
    own = np.where(twins[:, None] == twins, np.float32(0), _BARRED)
    sight = np.concatenate([np.zeros((2 * pairs, seen), np.float32), own], 1)
    return sight[None, None]
