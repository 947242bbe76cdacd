"""`relational-cnn` (Severyn & Moschitti, 2016): trained by `askline train`, run without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import ClassVar

import numpy as np

from ..engine.lexical_matches import PairBlock, PairFeatures
from ..engine.numpy_layers import pooled_convolution
from ..engine.numpy_ops import FloatArray, IntArray
from ..models.folder import ModelFolder, check_shapes
from ..models.light_config import RelationalCNNConfig
from ..models.word_vectors import WordVectors
from .base import Ranker, folder_to_pickle, spec_with_folder
from .requests import ScoreArray

__all__ = ["RelationalCNN", "shapes"]


@dataclass(frozen=True, eq=False)
class RelationalCNN(Ranker):
    """A small network: words marked where the texts overlap, a similarity matrix, convolutions."""

    name: ClassVar[str] = "relational-cnn"

    folder: str | None
    """As given to `load`; None if not loaded from a folder."""
    layout: RelationalCNNConfig = field(repr=False)
    tensors: Mapping[str, FloatArray] = field(repr=False)
    vectors: WordVectors = field(repr=False)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> RelationalCNN:
        """A folder that `askline train relational-cnn` wrote."""
        opened = ModelFolder.open(folder, kind=cls.name)
        layout = RelationalCNNConfig.from_config(opened.config)
        tensors = opened.tensors()
        check_shapes(tensors, shapes(layout), path=opened.path)
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

    def __str__(self) -> str:
        return spec_with_folder(self.name, self.folder)

    def __reduce__(self) -> tuple[Callable[..., RelationalCNN], tuple[str]]:
        return type(self).load, (folder_to_pickle(self, self.folder),)


def shapes(layout: RelationalCNNConfig) -> dict[str, tuple[int, ...]]:
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
