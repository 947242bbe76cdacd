"""
`cosinet` (Bonadiman & Moschitti, 2020), run without torch.

Without a folder it is the first-stage filter that ships with askline, which ignores the order of
the texts. With a folder it is any network that `askline train cosinet` wrote, including those that
read the list in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from os import PathLike, fspath
from typing import ClassVar

import numpy as np

from ..engine.cosinet_network import CosinetNetwork, FirstStageNetwork, cosinet_shapes
from ..engine.lexical_matches import PairFeatures, TokenizedList
from ..models.folder import ModelFolder, check_shapes
from ..models.light_config import CosinetConfig, FirstStageConfig
from ..models.word_vectors import WordVectors
from .base import Ranker, folder_to_pickle, spec_with_folder
from .requests import ScoreArray

__all__ = ["Cosinet"]


@dataclass(frozen=True, eq=False)
class Cosinet(Ranker):
    """
    A small network over word vectors: word relatedness, convolutions, direct features.

    It ranks a hundred documents in milliseconds. Some networks have a recurrent layer that reads
    the list in its order. Scores depend on the whole list.
    """

    name: ClassVar[str] = "cosinet"

    folder: str | None
    """As given to `load`; empty for the shipped model, None if not loaded from a folder."""
    network: CosinetNetwork | FirstStageNetwork = field(repr=False)
    own_vectors: WordVectors | None = field(repr=False)
    """None for the vectors that ship with askline, which are read when they are first needed."""

    @classmethod
    def load(cls, folder: str | PathLike[str] = "") -> Cosinet:
        """Load a model folder, or the shipped first-stage filter."""
        path = fspath(folder) or str(files("askline.models") / "shipped" / "cosinet")
        opened = ModelFolder.open(path, kind=(CosinetConfig.kind, FirstStageConfig.kind))
        own_vectors = None if opened.has_shipped_vectors else opened.vectors()
        return cls(fspath(folder), _network(opened), own_vectors)

    @property
    def vectors(self) -> WordVectors:
        """The word vectors that the network was trained with."""
        return WordVectors.load() if self.own_vectors is None else self.own_vectors

    @property
    def listwise(self) -> bool:
        if isinstance(self.network, FirstStageNetwork):
            return True
        return self.network.config.list_layer != "none"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """The logit of each text."""
        if isinstance(self.network, FirstStageNetwork):
            scores = self.network.scores(TokenizedList.of(question, texts, self.vectors))
        else:
            channels = self.network.config.channels
            pairs = PairFeatures.of(question, texts, self.vectors, channels=channels)
            scores = self.network.scores(pairs)
        return np.asarray(scores, np.float64)

    def __str__(self) -> str:
        return spec_with_folder(self.name, self.folder)

    def __reduce__(self) -> tuple[Callable[..., Cosinet], tuple[str]]:
        return type(self).load, (folder_to_pickle(self, self.folder),)


def _network(opened: ModelFolder) -> CosinetNetwork | FirstStageNetwork:
    tensors = opened.tensors()
    if opened.config["kind"] == FirstStageConfig.kind:
        first_stage = FirstStageConfig.from_config(opened.config)
        check_shapes(tensors, first_stage.shapes(), path=opened.path)
        return FirstStageNetwork(first_stage, tensors)
    config = CosinetConfig.from_config(opened.config)
    check_shapes(tensors, cosinet_shapes(config), path=opened.path)
    return CosinetNetwork(config, tensors)
