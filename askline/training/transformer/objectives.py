"""What a transformer minimises: losses over points, lists and pairs, and what a teacher says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ...errors import InputError
from ..losses import list_loss, point_loss

__all__ = ["Objective", "pair_loss", "teacher_loss"]


@dataclass(frozen=True, slots=True)
class Objective:
    """
    The weight of each loss.

    Lists with a share of points did best on the transfer sets, points alone when adapting to
    WikiQA, whose questions without an answer have no list to learn from:
    research/notes/transformers.md.
    """

    point: float = 0.3
    list: float = 1.0
    pair: float = 0.0
    taught: float = 0.0
    """The share of the whole that is learnt from a teacher; the rest is from the labels."""
    temperature: float = 2.0
    """What the teacher's and the learner's scores are divided by before they are compared."""

    def __post_init__(self) -> None:
        weights = (self.point, self.list, self.pair)
        if min(weights) < 0 or not sum(weights):
            raise InputError(f"Loss weights must be 0 or more and not all 0, got {weights}.")
        if not 0 <= self.taught <= 1:
            raise InputError(f"taught must be from 0 to 1, got {self.taught}.")
        if not self.temperature > 0:
            raise InputError(f"temperature must be above 0, got {self.temperature}.")

    def __call__(
        self, scores: Tensor, labels: Tensor, sizes: Sequence[int], taught: Tensor | None = None
    ) -> Tensor:
        """`scores`, `labels` and `taught` (pairs,), `sizes` the candidates of each question."""
        own = self._of_labels(scores, labels, sizes)
        if not self.taught:
            return own
        if taught is None:
            raise InputError("These lists have no teacher's scores to learn from: TaughtLists do.")
        theirs = teacher_loss(scores, taught, sizes, temperature=self.temperature)
        return (1 - self.taught) * own + self.taught * theirs

    def _of_labels(self, scores: Tensor, labels: Tensor, sizes: Sequence[int]) -> Tensor:
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


def teacher_loss(
    scores: Tensor, taught: Tensor, sizes: Sequence[int], *, temperature: float
) -> Tensor:
    """
    KL divergence to the teacher's softmax over a question's candidates from the learner's own.

    The mean over questions, times the temperature's square: gradients then keep their size at
    every temperature (Hinton, Vinyals and Dean, 2015).
    """
    lengths = torch.tensor(sizes)
    inside = (torch.arange(max(sizes)) < lengths[:, None]).to(scores.device)  # (questions, longest)
    nothing = torch.full(inside.shape, -torch.inf, device=scores.device)
    own, theirs = (
        nothing.masked_scatter(inside, each / temperature).log_softmax(1).masked_fill(~inside, 0.0)
        for each in (scores, taught)
    )
    return temperature**2 * (theirs.exp() * (theirs - own)).sum() / len(sizes)
