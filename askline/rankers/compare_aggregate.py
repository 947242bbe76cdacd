"""`compare-aggregate` (Wang & Jiang, 2016): trained by `askline train`, run without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import ClassVar

import numpy as np

from ..engine.lexical_matches import PairBlock, PairFeatures
from ..engine.numpy_layers import apply_list_layer, list_layer_shapes, pooled_convolutions
from ..engine.numpy_ops import FloatArray, IntArray
from ..models.folder import ModelFolder, check_shapes
from ..models.light_config import CompareAggregateConfig
from ..models.word_vectors import WordVectors
from .base import Ranker, folder_to_pickle, spec_with_folder
from .requests import ScoreArray

__all__ = ["CompareAggregate", "shapes"]


@dataclass(frozen=True, eq=False)
class CompareAggregate(Ranker):
    """
    A small network: each word times what it attends to in the other text, then convolutions.

    With a list layer a score depends on the other candidates and their order.
    """

    name: ClassVar[str] = "compare-aggregate"

    folder: str | None
    """As given to `load`; None if not loaded from a folder."""
    layout: CompareAggregateConfig = field(repr=False)
    tensors: Mapping[str, FloatArray] = field(repr=False)
    vectors: WordVectors = field(repr=False)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> CompareAggregate:
        """A folder that `askline train compare-aggregate` wrote."""
        opened = ModelFolder.open(folder, kind=cls.name)
        layout = CompareAggregateConfig.from_config(opened.config)
        tensors = opened.tensors()
        check_shapes(tensors, shapes(layout), path=opened.path)
        return cls(fspath(folder), layout, tensors, opened.vectors())

    @property
    def listwise(self) -> bool:
        return self.layout.list_layer != "none"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """The logit of each text."""
        pairs = PairFeatures.of(question, texts, self.vectors, channels=())
        gated = self._gated(pairs.lexicon.unit * np.float32(self.layout.vector_scale))
        together = np.empty((len(texts), self.layout.pair_size), np.float32)
        for block in pairs.blocks():
            together[block.rows] = self._pairs(gated, pairs.question, block)
        read = apply_list_layer(self.layout.list_layer, self.tensors, together)
        scores = read @ self.tensors["score.weight"][0] + self.tensors["score.bias"]
        return np.asarray(scores, np.float64)

    def _gated(self, vectors: FloatArray) -> FloatArray:
        """Content let through by the gate: (distinct words, gate)."""
        take = self.tensors
        gate = vectors @ take["gate.weight"].T + take["gate.bias"]
        content = vectors @ take["content.weight"].T + take["content.bias"]
        return np.asarray(np.tanh(content) / (1 + np.exp(-gate)), np.float32)

    def _pairs(self, gated: FloatArray, question: IntArray, block: PairBlock) -> FloatArray:
        asked = gated[question]  # (question words, gate)
        inside = np.arange(block.words.shape[1]) < block.lengths[:, None]
        said = gated[block.words]  # (block, longest, gate)
        likeness = asked @ said.swapaxes(1, 2)  # (block, question words, longest)
        to_said = _softmax(np.where(inside[:, None], likeness, -np.inf), axis=2)
        to_asked = _softmax(likeness, axis=1)
        by_question = asked * (to_said @ said)
        by_candidate = said * (to_asked.swapaxes(1, 2) @ asked) * inside[..., None]
        lengths = np.full(len(block.rows), len(question))
        sides = (("question", by_question, lengths), ("candidate", by_candidate, block.lengths))
        pooled = [
            pooled_convolutions(words, own, self._filters(side)) for side, words, own in sides
        ]
        return np.tanh(np.concatenate(pooled, axis=1))

    def _filters(self, side: str) -> list[tuple[FloatArray, FloatArray]]:
        """The weight and the bias of each width."""
        names = [f"{side}.{number}" for number in range(len(self.layout.widths))]
        return [(self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]) for name in names]

    def __str__(self) -> str:
        return spec_with_folder(self.name, self.folder)

    def __reduce__(self) -> tuple[Callable[..., CompareAggregate], tuple[str]]:
        return type(self).load, (folder_to_pickle(self, self.folder),)


def shapes(layout: CompareAggregateConfig) -> dict[str, tuple[int, ...]]:
    """The tensors that a folder of this layout must hold."""
    found: dict[str, tuple[int, ...]] = {}
    for name in ("gate", "content"):
        found[f"{name}.weight"] = (layout.gate, layout.dimensions)
        found[f"{name}.bias"] = (layout.gate,)
    for side in ("question", "candidate"):
        for number, width in enumerate(layout.widths):
            found[f"{side}.{number}.weight"] = (layout.filters, layout.gate, width)
            found[f"{side}.{number}.bias"] = (layout.filters,)
    found |= list_layer_shapes(layout.list_layer, layout.pair_size, layout.list_hidden)
    read = layout.pair_size if layout.list_layer == "none" else layout.list_hidden
    return found | {"score.weight": (1, read), "score.bias": (1,)}


def _softmax(values: FloatArray, *, axis: int) -> FloatArray:
    powers = np.exp(values - values.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True), np.float32)
