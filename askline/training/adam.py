"""Adam, without what `torch.optim.Adam` brings along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

__all__ = ["Adam"]


class Adam:
    """
    The steps of `torch.optim.Adam(…, fused=True)`, to the bit.

    That class loads torch's compiler when it is made, which takes as long as loading torch; the
    function that both call does not.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self._weights = list(weights)
        self._means = [torch.zeros_like(weight) for weight in self._weights]
        self._squares = [torch.zeros_like(weight) for weight in self._weights]
        self._steps = [torch.zeros((), device=weight.device) for weight in self._weights]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """Move the weights. A gradient lies in memory as its weight does."""
        adam(
            self._weights,
            list(gradients),
            self._means,
            self._squares,
            [],
            self._steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state(self) -> dict[str, Any]:
        """What the next step depends on, besides the weights."""
        return {"means": self._means, "squares": self._squares, "steps": self._steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to where `state` was taken."""
        for name, own in self.state().items():
            for value, kept in zip(own, state[name], strict=True):
                value.copy_(kept)
