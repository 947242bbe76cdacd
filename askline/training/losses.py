"""What is minimised: one decision a pair, or one distribution a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

__all__ = ["LOSSES", "Loss", "list_loss", "point_loss"]

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
