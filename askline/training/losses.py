"""
What is minimised: one decision a pair, or one distribution a question.

What a transformer minimises: losses over points, lists and pairs, and what a teacher says.

Softmax and means within runs of unequal length, without a loop over the runs.

What a cascade minimises.

"drawn" is the paper's: of each batch, the loss of one classifier drawn evenly. "joint" adds all of
them up, and lets each early classifier learn from the last one's scores as well as from the labels;
on a small encoder with little data nothing else came near: research/notes/cascade.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..errors import InputError

__all__ = [
    "LOSSES",
    "CascadeObjective",
    "Lists",
    "Loss",
    "Objective",
    "list_loss",
    "log_shares",
    "pair_loss",
    "point_loss",
    "teacher_loss",
]


Loss = Literal["list", "point"]
LOSSES: tuple[str, ...] = get_args(Loss)


def point_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over all pairs."""
    return F.binary_cross_entropy_with_logits(scores, labels)


def list_loss(scores: Tensor, labels: Tensor, sizes: Sequence[int]) -> Tensor:
    """
    KL divergence to the normalised labels from the softmax over a question's candidates.

    The mean over questions. A question without an answer has no distribution to learn and adds 0.
    """
    lengths = torch.tensor(sizes)
    inside = (torch.arange(max(sizes)) < lengths[:, None]).to(scores.device)  # (questions, longest)
    logits = torch.full(inside.shape, -torch.inf, device=scores.device)
    log_share = logits.masked_scatter(inside, scores).log_softmax(1).masked_fill(~inside, 0.0)
    gold = torch.zeros(inside.shape, device=scores.device).masked_scatter(inside, labels)
    gold = gold / gold.sum(1, keepdim=True).clamp(min=1)
    return (torch.xlogy(gold, gold) - gold * log_share).sum() / len(sizes)


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


def log_shares(values: Tensor, owners: Tensor, count: int) -> Tensor:
    """The log-softmax of each owner's values: (…, n) and (n,) → (…, n)."""
    index = owners.expand(values.shape)
    shape = (*values.shape[:-1], count)
    peak = values.new_full(shape, -torch.inf).scatter_reduce(
        -1, index, values.detach(), "amax", include_self=True
    )
    level = values - peak.gather(-1, index)
    total = values.new_zeros(shape).scatter_add(-1, index, level.exp())
    return level - total.log().gather(-1, index)


class Lists(NamedTuple):
    """The labels of a batch of lists."""

    labels: Tensor
    """(pairs,) from 0 to 1."""
    owners: Tensor
    """(pairs,) the question of each."""
    questions: int
    """How many."""
    teacher: Tensor | None = None
    """(pairs,) scores of a fixed model, where one teaches."""


@dataclass(frozen=True, slots=True)
class CascadeObjective:
    """Weights of the parts of the loss."""

    kind: Literal["joint", "drawn"] = "joint"
    early: float = 0.4
    """The weight of each classifier but the last, which has 1 (joint)."""
    distil: float = 0.8
    """The share of distillation in the loss of an early classifier; the rest is labels'."""
    teach: float = 0.7
    """The same for the last classifier, where there is a teacher."""
    from_teacher: float = 0.5
    """The teacher's share in what early classifiers learn; the rest is the last classifier's."""
    point: float = 0.3
    """The weight of each pair on its own beside the list's, which has 1."""
    temperature: float = 2.0
    reading: float = 1.5
    """The weight of the reader's loss."""
    anchor: float = 0.0
    """The weight of how far the last layer's first token is from the teacher's."""

    def __post_init__(self) -> None:
        if self.kind not in ("joint", "drawn"):
            raise InputError(f"kind must be 'joint' or 'drawn', got {self.kind!r}.")
        for name in ("distil", "teach", "from_teacher"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} must be from 0 to 1, got {getattr(self, name)}.")
        for name in ("early", "point", "reading", "anchor"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")
        if not self.temperature > 0:
            raise InputError(f"temperature must be above 0, got {self.temperature}.")

    def __call__(self, scores: Tensor, lists: Lists) -> Tensor:
        """`scores` (depths, pairs) → a number."""
        hard = self._hard(scores, lists)  # (depths,)
        if self.kind == "drawn":
            return hard[int(torch.randint(len(hard), ()))]
        last = scores[-1].detach()
        target = last
        if lists.teacher is not None:
            target = self.from_teacher * lists.teacher + (1 - self.from_teacher) * last
        early = (1 - self.distil) * hard[:-1]
        early = early + self.distil * self._soft(scores[:-1], target, lists)
        final = hard[-1]
        if lists.teacher is not None and self.teach:
            soft = self._soft(scores[-1:], lists.teacher, lists)[0]
            final = (1 - self.teach) * final + self.teach * soft
        return final + self.early * early.sum()

    def apart(self, first: Tensor, teacher: Tensor) -> Tensor:
        """How far states (sequences, width) are from the teacher's, as a share of their size."""
        off = (first.float() - teacher.float()).square().sum(-1)
        return self.anchor * (off / teacher.float().square().sum(-1)).mean()

    def _hard(self, scores: Tensor, lists: Lists) -> Tensor:
        """The loss against labels at each depth."""
        answers = scores.new_zeros(lists.questions).index_add(0, lists.owners, lists.labels)
        shares = lists.labels / answers.clamp(min=1e-9)[lists.owners]
        logs = log_shares(scores, lists.owners, lists.questions)
        lists_loss = -(shares * logs).sum(-1) / (answers > 0).sum().clamp(min=1)
        labels = lists.labels.expand(scores.shape)
        points = F.binary_cross_entropy_with_logits(scores, labels, reduction="none").mean(-1)
        return lists_loss + self.point * points

    def _soft(self, scores: Tensor, target: Tensor, lists: Lists) -> Tensor:
        """The loss against another classifier's scores at each depth; 0 where they agree."""
        heat = self.temperature
        logs = log_shares(scores / heat, lists.owners, lists.questions)
        wanted = log_shares(target / heat, lists.owners, lists.questions)
        apart = heat**2 * (wanted.exp() * (wanted - logs)).sum(-1) / lists.questions
        chances = target.sigmoid().expand(scores.shape)
        points = F.binary_cross_entropy_with_logits(scores, chances, reduction="none")
        least = F.binary_cross_entropy_with_logits(target, target.sigmoid())
        return apart + self.point * (points.mean(-1) - least)
