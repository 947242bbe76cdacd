"""
The losses: of pairs, of candidate lists, of a teacher's scores, and of a cascade's classifiers.

`Objective` weighs the losses of a cross-encoder, `CascadeObjective` those of a cascade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..errors import InputError
from .loop import check_not_negative, check_positive

__all__ = [
    "LOSSES",
    "CascadeObjective",
    "ListLabels",
    "Loss",
    "Objective",
    "list_loss",
    "pair_loss",
    "point_loss",
    "segment_log_softmax",
]

Loss = Literal["list", "point"]
LOSSES: tuple[str, ...] = get_args(Loss)


def point_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over all pairs."""
    return F.binary_cross_entropy_with_logits(scores, labels)


def list_loss(scores: Tensor, labels: Tensor, sizes: Sequence[int]) -> Tensor:
    """
    KL divergence of the softmax over a question's candidates from its normalized labels.

    The mean over questions. A question without an answer has no target distribution and adds 0.
    """
    lengths = torch.tensor(sizes)
    inside = (torch.arange(max(sizes)) < lengths[:, None]).to(scores.device)  # (questions, longest)
    logits = torch.full(inside.shape, -torch.inf, device=scores.device)
    log_share = logits.masked_scatter(inside, scores).log_softmax(1).masked_fill(~inside, 0.0)
    gold = torch.zeros(inside.shape, device=scores.device).masked_scatter(inside, labels)
    gold = gold / gold.sum(1, keepdim=True).clamp(min=1)
    return (torch.xlogy(gold, gold) - gold * log_share).sum() / len(sizes)


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


@dataclass(frozen=True, slots=True)
class Objective:
    """
    The weight of each loss of a cross-encoder.

    The list loss with a share of the point loss was best on the transfer sets, the point loss alone
    for adapting to WikiQA, whose questions without an answer have no list loss.
    """

    point: float = 0.3
    list: float = 1.0
    pair: float = 0.0

    def __post_init__(self) -> None:
        weights = (self.point, self.list, self.pair)
        if min(weights) < 0 or not sum(weights):
            raise InputError(f"Loss weights must not be negative nor all 0, got {weights}.")

    def __call__(self, scores: Tensor, labels: Tensor, sizes: Sequence[int]) -> Tensor:
        """Scores and labels are (pairs,); `sizes` has the number of candidates per question."""
        total = scores.new_zeros(())
        if self.point:
            total = total + self.point * point_loss(scores, labels)
        if self.list:
            total = total + self.list * list_loss(scores, labels, sizes)
        if self.pair:
            total = total + self.pair * pair_loss(scores, labels, sizes)
        return total


def segment_log_softmax(values: Tensor, owners: Tensor, count: int) -> Tensor:
    """The log-softmax over the values of each of `count` owners: (…, n) and (n,) → (…, n)."""
    index = owners.expand(values.shape)
    shape = (*values.shape[:-1], count)
    peak = values.new_full(shape, -torch.inf).scatter_reduce(
        -1, index, values.detach(), "amax", include_self=True
    )
    level = values - peak.gather(-1, index)
    total = values.new_zeros(shape).scatter_add(-1, index, level.exp())
    return level - total.log().gather(-1, index)


class ListLabels(NamedTuple):
    """The labels of a batch of candidate lists."""

    labels: Tensor
    """(pairs,) from 0 to 1."""
    owners: Tensor
    """(pairs,) the question of each."""
    questions: int
    """The number of questions."""
    teacher: Tensor | None = None
    """(pairs,) scores of a fixed teacher, if there is one."""


@dataclass(frozen=True, slots=True)
class CascadeObjective:
    """
    Weights of the parts of a cascade's loss.

    "drawn" is the loss of the Cascade Transformer paper: in each batch that of one classifier,
    drawn uniformly. "joint" adds the losses of all classifiers, and each early classifier learns
    from the scores of the last as well as from the labels; on a small encoder with little data it
    was better by far.
    """

    kind: Literal["joint", "drawn"] = "joint"
    early: float = 0.4
    """The weight of each classifier but the last, which has 1 (joint)."""
    distil: float = 0.8
    """The share of distillation in the loss of an early classifier; the rest is the labels'."""
    teach: float = 0.7
    """The same for the last classifier, if there is a teacher."""
    from_teacher: float = 0.5
    """The share of the teacher in the target of early classifiers; the rest is the last one's."""
    point: float = 0.3
    """The weight of the point loss; the list loss has 1."""
    temperature: float = 2.0
    reading: float = 1.5
    """The weight of the reader's loss."""
    anchor: float = 0.0
    """The weight of the distance between the last layer's first token and the teacher's."""

    def __post_init__(self) -> None:
        if self.kind not in ("joint", "drawn"):
            raise InputError(f"kind must be 'joint' or 'drawn', got {self.kind!r}.")
        for name in ("distil", "teach", "from_teacher"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} must be from 0 to 1, got {getattr(self, name)}.")
        check_not_negative(self, "early", "point", "reading", "anchor")
        check_positive(self, "temperature")

    def __call__(self, scores: Tensor, lists: ListLabels) -> Tensor:
        """Scores (depths, pairs) → a scalar."""
        of_labels = self._label_losses(scores, lists)  # (depths,)
        if self.kind == "drawn":
            return of_labels[int(torch.randint(len(of_labels), ()))]
        last = scores[-1].detach()
        target = last
        if lists.teacher is not None:
            target = self.from_teacher * lists.teacher + (1 - self.from_teacher) * last
        early = (1 - self.distil) * of_labels[:-1]
        early = early + self.distil * self._distillation_losses(scores[:-1], target, lists)
        final = of_labels[-1]
        if lists.teacher is not None and self.teach:
            of_teacher = self._distillation_losses(scores[-1:], lists.teacher, lists)[0]
            final = (1 - self.teach) * final + self.teach * of_teacher
        return final + self.early * early.sum()

    def anchor_loss(self, first: Tensor, teacher: Tensor) -> Tensor:
        """The squared distance of states (sequences, width) from the teacher's, relative to its."""
        distance = (first.float() - teacher.float()).square().sum(-1)
        return self.anchor * (distance / teacher.float().square().sum(-1)).mean()

    def _label_losses(self, scores: Tensor, lists: ListLabels) -> Tensor:
        """(depths,) the loss of each classifier against the labels."""
        answers = scores.new_zeros(lists.questions).index_add(0, lists.owners, lists.labels)
        shares = lists.labels / answers.clamp(min=1e-9)[lists.owners]
        logs = segment_log_softmax(scores, lists.owners, lists.questions)
        list_losses = -(shares * logs).sum(-1) / (answers > 0).sum().clamp(min=1)
        labels = lists.labels.expand(scores.shape)
        points = F.binary_cross_entropy_with_logits(scores, labels, reduction="none").mean(-1)
        return list_losses + self.point * points

    def _distillation_losses(self, scores: Tensor, target: Tensor, lists: ListLabels) -> Tensor:
        """(depths,) the loss of each classifier against other scores; 0 if they are equal."""
        heat = self.temperature
        logs = segment_log_softmax(scores / heat, lists.owners, lists.questions)
        wanted = segment_log_softmax(target / heat, lists.owners, lists.questions)
        divergence = heat**2 * (wanted.exp() * (wanted - logs)).sum(-1) / lists.questions
        probabilities = target.sigmoid().expand(scores.shape)
        points = F.binary_cross_entropy_with_logits(scores, probabilities, reduction="none")
        least = F.binary_cross_entropy_with_logits(target, target.sigmoid())
        return divergence + self.point * (points.mean(-1) - least)
