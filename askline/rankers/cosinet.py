"""
`cosinet` (Bonadiman & Moschitti, 2020), run without torch.

Without a folder it is the first-stage filter that comes with askline, which is blind to the order
of the candidates. With one it is whatever `askline train cosinet` wrote there, also the networks
that read the list in its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from os import PathLike, fspath
from typing import ClassVar

import numpy as np

from ..engine.cosinet_network import CosinetNetwork, cosinet_shapes
from ..engine.first_stage import FirstStageNetwork
from ..engine.lexical_matches import PairFeatures, TokenizedList
from ..models.folder import ModelFolder, check_shapes
from ..models.light_config import CosinetConfig, FirstStageConfig
from ..models.word_vectors import WordVectors
from .base import FloatArray
from .pipeline import ScoringRanker

__all__ = ["Cosinet"]


@dataclass(frozen=True, eq=False)
class Cosinet(ScoringRanker):
    """Scores depend on the whole list: do not cache them by pair."""

    name: ClassVar[str] = "cosinet"

    folder: str
    """As given to `load`; empty for the one that comes with askline."""
    network: CosinetNetwork | FirstStageNetwork = field(repr=False)
    vectors: WordVectors = field(repr=False)

    @classmethod
    def load(cls, folder: str | PathLike[str] = "") -> Cosinet:
        """A model folder, or the shipped filter."""
        path = fspath(folder) or str(files("askline.models") / "shipped" / "cosinet")
        opened = ModelFolder.open(path, kind=(CosinetConfig.kind, FirstStageConfig.kind))
        return cls(fspath(folder), _network(opened), opened.vectors())

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """One number a candidate, in the order given."""
        if isinstance(self.network, FirstStageNetwork):
            scores = self.network.scores(TokenizedList.of(question, candidates, self.vectors))
        else:
            channels = self.network.config.channels
            pairs = PairFeatures.of(question, candidates, self.vectors, channels=channels)
            scores = self.network.scores(
                pairs.lexicon,
                pairs.question,
                pairs.words,
                pairs.lengths,
                channels=(pairs.question_channels, pairs.candidate_channels),
            )
        return np.asarray(scores, np.float64)

    def __str__(self) -> str:
        return f"{self.name}({self.folder!r})" if self.folder else self.name


def _network(opened: ModelFolder) -> CosinetNetwork | FirstStageNetwork:
    tensors = opened.tensors()
    if opened.config["kind"] == FirstStageConfig.kind:
        layout = FirstStageConfig.from_config(opened.config)
        check_shapes(tensors, layout.shapes(), path=opened.path)
        return FirstStageNetwork(layout, tensors)
    read = CosinetConfig.from_config(opened.config)
    check_shapes(tensors, cosinet_shapes(read), path=opened.path)
    return CosinetNetwork(read, tensors)
