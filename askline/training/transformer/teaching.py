"""
Lists on which a larger network has given its scores, for a smaller one to learn from as well.

Teacher and learner may have tokenisers of their own: what is drawn are numbers of texts, which each
of them has in its own tokens.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import InputError
from .network import PairNetwork
from .pairs import PairSet
from .sampling import SampledLists, Scorer
from .scoring import SCORING_BUDGET, pair_scores

__all__ = ["TaughtLists", "teacher_scores"]


class TaughtLists:
    """A `ListSource`: the learner's lists, drawn as ever, with what the teacher says of them."""

    def __init__(self, lists: SampledLists, teachers: SampledLists, teacher: Scorer) -> None:
        """`teachers` are the same lists in the teacher's tokens."""
        if len(lists.texts) != len(teachers.texts) or len(lists) != len(teachers):
            raise InputError(
                f"Expected the same lists for teacher and learner, got {len(teachers)} with "
                f"{len(teachers.texts)} texts and {len(lists)} with {len(lists.texts)}."
            )
        self.name = f"{lists.name}, taught"
        self._lists, self._teachers, self._teacher = lists, teachers, teacher

    def __len__(self) -> int:
        return len(self._lists)

    def draw(
        self, chosen: NDArray[np.int64], random: np.random.Generator, score: Scorer
    ) -> PairSet:
        """The lists that the learner would get without a teacher, and `taught`."""
        drawn = self._lists.whole(chosen, random, score)
        told = self._teacher(self._teachers.pairs(drawn))
        return replace(self._lists.pairs(drawn), taught=np.asarray(told, np.float32))


def teacher_scores(network: PairNetwork) -> Scorer:
    """What a finished network says of pairs, without gradients."""
    network.eval()

    def score(pairs: PairSet) -> NDArray[np.float32]:
        with torch.inference_mode():
            rows = np.arange(len(pairs.tokens))
            found = pair_scores(network, pairs, rows, budget=SCORING_BUDGET)
        values: NDArray[np.float32] = found.float().cpu().numpy()
        return values

    return score
