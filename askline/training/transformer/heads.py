"""From an encoder's last layer to one score a pair."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["FirstTokenHead", "MeanHead"]


class FirstTokenHead(nn.Module):
    """
    The Report's head: the first token, one hidden layer of 256, two outputs.

    The score is the log-odds of the first output ("answers") against the second, so that one
    number ranks and its sigmoid is the softmax of the two.
    """

    def __init__(self, width: int, *, hidden: int = 256, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, 2)
        )

    def forward(self, states: Tensor, inside: Tensor) -> Tensor:  # noqa: ARG002
        """`states` (pairs, tokens, width) → (pairs,)."""
        outputs: Tensor = self.layers(states[:, 0])
        return outputs[:, 0] - outputs[:, 1]


class MeanHead(nn.Module):
    """
    The Cascade Transformer's: the mean over all tokens, three layers of the encoder's width.

    Each layer is followed by tanh and dropout; a last one without a name in the paper gives the
    score.
    """

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(3):
            layers += [nn.Linear(width, width), nn.Tanh(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, states: Tensor, inside: Tensor) -> Tensor:
        """`states` (pairs, tokens, width), `inside` (pairs, tokens), 0 for padding → (pairs,)."""
        weights = inside.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1)
        return torch.squeeze(self.layers(mean), -1)
