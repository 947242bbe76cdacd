"""What a transformer minimises: a weighted sum of losses over points, lists and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ...errors import InputError
from ..losses import list_loss, point_loss

__all__ = ["Objective", "pair_loss"]


@dataclass(frozen=True, slots=True)
class Objective:
    """
    The weight of each loss.

    Lists with a share of points did best on the transfer sets, points alone when adapting to
    WikiQA, whose questions without an answer have no list to learn from: docs/transformers.md.
    """

    point: float = 0.3
    list: float = 1.0
    pair: float = 0.0

    def __post_init__(self) -> None:
        weights = (self.point, self.list, self.pair)
        if min(weights) < 0 or not sum(weights):
            raise InputError(f"Loss weights must be 0 or more and not all 0, got {weights}.")

    def __call__(self, scores: Tensor, labels: Tensor, sizes: Sequence[int]) -> Tensor:
        """`scores` and `labels` (pairs,), `sizes` the candidates of each question."""
        total = scores.new_zeros(())
        if self.point:
            total = total + self.point * point_loss(scores, labels)
        if self.list:
            total = total + self.list * list_loss(scores, labels, sizes)
        if self.pair:
            total = total + self.pair * pair_loss(scores, labels, sizes)
        return total


def pair_loss(scores: Tensor, labels: Tensor, sizes: Sequence[int]) -> Tensor:
    """
    The logistic loss of every answer against every other candidate of its question (RankNet).

    The mean over a question's pairs, then over questions; one without both labels adds 0.
    """
    losses = []
    for score, label in zip(
        *(torch.split(each, list(sizes)) for each in (scores, labels)), strict=True
    ):
        margins = score[label > 0].unsqueeze(1) - score[label == 0]  # (answers, others)
        losses.append(F.softplus(-margins).mean() if margins.numel() else scores.new_zeros(()))
    return torch.stack(losses).mean()
