"""A transformer in torch as a ranker: for measuring what was trained, not for speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar

import torch

from ...evaluation.measures import FloatArray
from ...rankers.pipeline import ScoringRanker
from .folder import load_selector
from .network import PairNetwork
from .pairs import encode_texts
from .scoring import SCORING_BUDGET, list_scores

__all__ = ["TransformerRanker"]


@dataclass(frozen=True, eq=False)
class TransformerRanker(ScoringRanker):
    """Scores are logits (or chances, where the folder asks for a sigmoid), each pair on its own."""

    name: ClassVar[str] = "transformer"

    network: PairNetwork
    tokeniser: Any
    folder: str = ""
    sigmoid: bool = False
    max_tokens: int = 256
    budget: int = field(default=SCORING_BUDGET)

    @classmethod
    def load(cls, folder: str | PathLike[str], *, device: str = "cpu") -> TransformerRanker:
        """
        A CrossEncoder folder, or one that was trained with another head.

        Scores agree with CrossEncoder's `predict`; those of the other heads are logits.
        """
        network, tokeniser, activation = load_selector(folder)
        longest = min(tokeniser.model_max_length, network.encoder.config.max_position_embeddings)  # type: ignore[union-attr]
        return cls(
            network.to(device).eval(),
            tokeniser,
            str(folder),
            sigmoid=activation == "sigmoid",
            max_tokens=longest,
        )

    def score(self, question: str, candidates: Sequence[str]) -> FloatArray:
        """One number a candidate, whatever the others are."""
        pairs = encode_texts(
            [(question, candidate) for candidate in candidates],
            self.tokeniser,
            sizes=[len(candidates)],
            max_tokens=self.max_tokens,
        )
        (scores,) = list_scores(self.network, pairs, budget=self.budget)
        return torch.from_numpy(scores).sigmoid().numpy() if self.sigmoid else scores

    def __str__(self) -> str:
        return f"transformer({self.folder!r})"
