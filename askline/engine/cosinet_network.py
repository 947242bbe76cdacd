"""Cosinet without torch: every config that `askline train cosinet` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..models.light_config import CosinetConfig
from .convolution import ConvolutionLookup
from .lexical_matches import Lexicon
from .numpy_ops import FloatArray, IntArray
from .recurrent_layer import apply_list_layer, list_layer_shapes

__all__ = [
    "CosinetNetwork",
    "cosinet_shapes",
]


@dataclass(frozen=True, slots=True, eq=False)
class CosinetNetwork:
    """The weights, with torch's names and shapes."""

    config: CosinetConfig
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
        vectors = lexicon.unit * np.float32(self.config.vector_scale)
        asked = self._taps("question", vectors[_with_zero(question)])
        own = np.arange(1, len(question) + 1)
        asked_pooled = asked.pooled_beside(own, asked_channels)  # (candidates, filters)
        said = self._taps("candidate", vectors).pooled(words, said_channels, lengths)
        pairs = np.concatenate([asked_pooled * said, asked_pooled - said], axis=1)
        read = apply_list_layer(self.config.list_layer, self.tensors, pairs)
        return np.asarray(read @ self.tensors["score.weight"][0] + self.tensors["score.bias"])

    def _taps(self, side: str, vectors: FloatArray) -> ConvolutionLookup:
        return ConvolutionLookup.of(
            vectors, self.tensors[f"{side}.weight"], self.tensors[f"{side}.bias"]
        )


def _with_zero(question: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, np.int64), question])


def cosinet_shapes(config: CosinetConfig) -> dict[str, tuple[int, ...]]:
    """The tensors that a folder of this config must hold."""
    inputs = config.dimensions + len(config.channels)
    shapes: dict[str, tuple[int, ...]] = {}
    for side in ("question", "candidate"):
        shapes[f"{side}.weight"] = (config.filters, inputs, config.width)
        shapes[f"{side}.bias"] = (config.filters,)
    shapes |= list_layer_shapes(config.list_layer, config.pair_size, config.list_hidden)
    read = config.pair_size if config.list_layer == "none" else config.list_hidden
    shapes["score.weight"] = (1, read)
    shapes["score.bias"] = (1,)
    return shapes
