"""Cosinet without torch: every layout that `askline train cosinet` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..models.light_config import CosinetLayout
from .convolution import Taps
from .list_layers import list_shapes, read_list
from .numpy_ops import FloatArray, IntArray
from .word_matches import Lexicon

__all__ = [
    "CosinetNetwork",
    "cosinet_shapes",
]


@dataclass(frozen=True, slots=True, eq=False)
class CosinetNetwork:
    """The weights, with torch's names and shapes."""

    layout: CosinetLayout
    tensors: Mapping[str, FloatArray]

    def scores(
        self,
        lexicon: Lexicon,
        question: IntArray,
        words: IntArray,
        lengths: IntArray,
        *,
        channels: tuple[FloatArray, FloatArray],
    ) -> FloatArray:
        """
        One number a candidate.

        `words` are those of all candidates in a row, `lengths` how many each has; `channels` are
        as `pair_channels` gives them.
        """
        asked_channels, said_channels = channels
        vectors = lexicon.unit * np.float32(self.layout.vector_scale)
        asked = self._taps("question", vectors[_with_zero(question)])
        own = np.arange(1, len(question) + 1)
        asked_pooled = asked.pooled_beside(own, asked_channels)  # (candidates, filters)
        said = self._taps("candidate", vectors).pooled(words, said_channels, lengths)
        pairs = np.concatenate([asked_pooled * said, asked_pooled - said], axis=1)
        read = read_list(self.layout.list_layer, self.tensors, pairs)
        return np.asarray(read @ self.tensors["score.weight"][0] + self.tensors["score.bias"])

    def _taps(self, side: str, vectors: FloatArray) -> Taps:
        return Taps.of(vectors, self.tensors[f"{side}.weight"], self.tensors[f"{side}.bias"])


def _with_zero(question: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, np.int64), question])


def cosinet_shapes(layout: CosinetLayout) -> dict[str, tuple[int, ...]]:
    """The tensors that a folder of this layout must hold."""
    inputs = layout.dimensions + len(layout.channels)
    shapes: dict[str, tuple[int, ...]] = {}
    for side in ("question", "candidate"):
        shapes[f"{side}.weight"] = (layout.filters, inputs, layout.width)
        shapes[f"{side}.bias"] = (layout.filters,)
    shapes |= list_shapes(layout.list_layer, layout.pair, layout.list_hidden)
    read = layout.pair if layout.list_layer == "none" else layout.list_hidden
    shapes["score.weight"] = (1, read)
    shapes["score.bias"] = (1,)
    return shapes
