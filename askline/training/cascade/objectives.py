"""
What a cascade minimises.

"drawn" is the paper's: of each batch, the loss of one classifier drawn evenly. "joint" adds all of
them up, and lets each early classifier learn from the last one's scores as well as from the labels;
on a small encoder with little data nothing else came near: research/notes/cascade.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ...errors import InputError
from .segments import log_shares

__all__ = ["CascadeObjective", "Lists"]


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
