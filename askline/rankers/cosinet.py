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
from ..engine.first_stage import FilterNetwork
from ..engine.word_matches import Listing, Pairs
from ..models.folder import ModelFolder, check_shapes
from ..models.light_config import CosinetLayout, FilterLayout
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
    network: CosinetNetwork | FilterNetwork = field(repr=False)
    vectors: WordVectors = field(repr=False)

    @classmethod
    def load(cls, folder: str | PathLike[str] = "") -> Cosinet:
        """A model folder, or the shipped filter."""
        path = fspath(folder) or str(files("askline.models") / "shipped" / "cosinet")
        opened = ModelFolder.open(path, kind=(CosinetLayout.kind, FilterLayout.kind))
        return cls(fspath(folder), _network(opened), opened.vectors())

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """One number a candidate, in the order given."""
        if isinstance(self.network, FilterNetwork):
            scores = self.network.scores(Listing.of(question, candidates, self.vectors))
        else:
            channels = self.network.layout.channels
            pairs = Pairs.of(question, candidates, self.vectors, channels=channels)
            scores = self.network.scores(
                pairs.lexicon,
                pairs.question,
                pairs.words,
                pairs.lengths,
                channels=(pairs.asked, pairs.said),
            )
        return np.asarray(scores, np.float64)

    def __str__(self) -> str:
        return f"{self.name}({self.folder!r})" if self.folder else self.name


def _network(opened: ModelFolder) -> CosinetNetwork | FilterNetwork:
    tensors = opened.tensors()
    if opened.config["kind"] == FilterLayout.kind:
        layout = FilterLayout.from_config(opened.config)
        check_shapes(tensors, layout.shapes(), path=opened.path)
        return FilterNetwork(layout, tensors)
    read = CosinetLayout.from_config(opened.config)
    check_shapes(tensors, cosinet_shapes(read), path=opened.path)
    return CosinetNetwork(read, tensors)
