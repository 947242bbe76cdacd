"""The Cosinet network in numpy, for every config that `askline train cosinet` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..models.light_config import CosinetConfig
from .convolution import ConvolutionLookup
from .lexical_matches import PairFeatures
from .numpy_ops import FloatArray
from .recurrent_layer import apply_list_layer, list_layer_shapes

__all__ = [
    "CosinetNetwork",
    "cosinet_shapes",
]


@dataclass(frozen=True, slots=True, eq=False)
class CosinetNetwork:
    """The network's config and weights, with torch's names and shapes."""

    config: CosinetConfig
    tensors: Mapping[str, FloatArray]

    def scores(self, pairs: PairFeatures) -> FloatArray:
        """One score per candidate."""
        vectors = pairs.lexicon.unit * np.float32(self.config.vector_scale)
        question_rows = np.concatenate([np.zeros(1, np.int64), pairs.question])  # zero word first
        question_words = np.arange(1, len(pairs.question) + 1)
        questions = self._lookup("question", vectors[question_rows]).pooled_per_pair(
            question_words, pairs.question_channels
        )  # (candidates, filters)
        candidates = self._lookup("candidate", vectors).pooled(
            pairs.words, pairs.candidate_channels, pairs.lengths
        )  # (candidates, filters)
        joined = np.concatenate([questions * candidates, questions - candidates], axis=1)
        outputs = apply_list_layer(self.config.list_layer, self.tensors, joined)
        return np.asarray(outputs @ self.tensors["score.weight"][0] + self.tensors["score.bias"])

    def _lookup(self, side: str, vectors: FloatArray) -> ConvolutionLookup:
        weight, bias = self.tensors[f"{side}.weight"], self.tensors[f"{side}.bias"]
        return ConvolutionLookup.of(vectors, weight, bias)


def cosinet_shapes(config: CosinetConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in a model folder of this config."""
    inputs = config.dimensions + len(config.channels)
    shapes: dict[str, tuple[int, ...]] = {}
    for side in ("question", "candidate"):
        shapes[f"{side}.weight"] = (config.filters, inputs, config.width)
        shapes[f"{side}.bias"] = (config.filters,)
    shapes |= list_layer_shapes(config.list_layer, config.pair_size, config.list_hidden)
    outputs = config.pair_size if config.list_layer == "none" else config.list_hidden
    shapes["score.weight"] = (1, outputs)
    shapes["score.bias"] = (1,)
    return shapes
