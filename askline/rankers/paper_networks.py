"""
`relational-cnn` and `compare-aggregate`: small networks of papers, as rankers without torch.

`askline train` writes their folders.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import ClassVar

import numpy as np

from ..engine.lexical_matches import PairBlock, PairFeatures
from ..engine.numpy_layers import (
    apply_list_layer,
    list_layer_shapes,
    pooled_convolution,
    pooled_convolutions,
)
from ..engine.numpy_ops import FloatArray, IntArray
from ..models.folder import ModelFolder, check_shapes
from ..models.light_config import CompareAggregateConfig, RelationalCNNConfig
from ..models.word_vectors import WordVectors
from .base import Ranker, folder_to_pickle, spec_with_folder
from .requests import ScoreArray

__all__ = ["CompareAggregate", "RelationalCNN", "compare_aggregate_shapes", "relational_cnn_shapes"]


@dataclass(frozen=True, eq=False)
class _PaperNetwork(Ranker):
    """A ranker that is named and pickled by its folder."""

    folder: str | None
    """As given to `load`; None if not loaded from a folder."""

    @classmethod
    @abstractmethod
    def load(cls, folder: str | PathLike[str]) -> _PaperNetwork:
        """Load a model folder."""

    def __str__(self) -> str:
        return spec_with_folder(self.name, self.folder)

    def __reduce__(self) -> tuple[Callable[..., _PaperNetwork], tuple[str]]:
        return type(self).load, (folder_to_pickle(self, self.folder),)


@dataclass(frozen=True, eq=False)
class RelationalCNN(_PaperNetwork):
    """Severyn & Moschitti, 2016: overlapping words marked, a similarity matrix, convolutions."""

    name: ClassVar[str] = "relational-cnn"

    layout: RelationalCNNConfig = field(repr=False)
    tensors: Mapping[str, FloatArray] = field(repr=False)
    vectors: WordVectors = field(repr=False)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> RelationalCNN:
        """A folder that `askline train relational-cnn` wrote."""
        opened = ModelFolder.open(folder, kind=cls.name)
        layout = RelationalCNNConfig.from_config(opened.config)
        tensors = opened.tensors()
        check_shapes(tensors, relational_cnn_shapes(layout), path=opened.path)
        return cls(fspath(folder), layout, tensors, opened.vectors())

    @property
    def listwise(self) -> bool:
        return False

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """The logit of each text."""
        pairs = PairFeatures.of(question, texts, self.vectors, channels=self.layout.input_channels)
        vectors = pairs.lexicon.unit * np.float32(self.layout.vector_scale)
        scores = np.empty(len(texts), np.float64)
        for block in pairs.blocks():
            scores[block.rows] = self._scores(vectors, pairs.question, block)
        return scores

    def _scores(self, vectors: FloatArray, question: IntArray, block: PairBlock) -> FloatArray:
        take = self.tensors
        inside = np.arange(block.words.shape[1]) < block.lengths[:, None]
        words = np.repeat(vectors[None, question], len(block.rows), axis=0)
        lengths = np.full(len(block.rows), len(question))
        asked = self._pooled("question", words, self._marks(block.question_channels), lengths)
        marks = self._marks(block.candidate_channels) * inside[..., None]
        said = self._pooled("candidate", vectors[block.words], marks, block.lengths)
        like = ((asked @ take["likeness.weight"].T) * said).sum(axis=1, keepdims=True)
        shares = [
            block.question_channels.sum(axis=1) / len(question),
            block.candidate_channels.sum(axis=1) / block.lengths[:, None],
        ]
        pairs = np.concatenate([asked, like, said, *shares], axis=1)
        hidden = np.tanh(pairs @ take["hidden.weight"].T + take["hidden.bias"])
        return np.asarray(hidden @ take["score.weight"][0] + take["score.bias"], np.float32)

    def _marks(self, channels: FloatArray) -> FloatArray:
        return self.tensors["mark.weight"][channels[..., 0].astype(np.int64)]

    def _pooled(
        self, side: str, words: FloatArray, marks: FloatArray, lengths: IntArray
    ) -> FloatArray:
        inputs = np.concatenate([words, marks], axis=2)
        weight, bias = self.tensors[f"{side}.weight"], self.tensors[f"{side}.bias"]
        return np.tanh(pooled_convolution(inputs, lengths, weight, bias))


def relational_cnn_shapes(layout: RelationalCNNConfig) -> dict[str, tuple[int, ...]]:
    """The tensors that a folder of this layout must hold."""
    inputs, pair = layout.dimensions + layout.mark, layout.pair_size
    found: dict[str, tuple[int, ...]] = {
        "mark.weight": (2, layout.mark),
        "likeness.weight": (layout.filters, layout.filters),
        "hidden.weight": (pair, pair),
        "hidden.bias": (pair,),
        "score.weight": (1, pair),
        "score.bias": (1,),
    }
    for side in ("question", "candidate"):
        found[f"{side}.weight"] = (layout.filters, inputs, layout.width)
        found[f"{side}.bias"] = (layout.filters,)
    return found


@dataclass(frozen=True, eq=False)
class CompareAggregate(_PaperNetwork):
    """
    Wang & Jiang, 2016: each word times what it attends to in the other text, then convolutions.

    With a list layer a score depends on the other candidates and their order.
    """

    name: ClassVar[str] = "compare-aggregate"

    layout: CompareAggregateConfig = field(repr=False)
    tensors: Mapping[str, FloatArray] = field(repr=False)
    vectors: WordVectors = field(repr=False)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> CompareAggregate:
        """A folder that `askline train compare-aggregate` wrote."""
        opened = ModelFolder.open(folder, kind=cls.name)
        layout = CompareAggregateConfig.from_config(opened.config)
        tensors = opened.tensors()
        check_shapes(tensors, compare_aggregate_shapes(layout), path=opened.path)
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


def compare_aggregate_shapes(layout: CompareAggregateConfig) -> dict[str, tuple[int, ...]]:
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
