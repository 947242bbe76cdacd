"""One step of training: loss, gradients, and what the optimiser makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..engine.numpy_ops import IntArray
from .adam import Adam
from .encoding import EncodedSet
from .hands import Hands, halves
from .losses import list_loss, point_loss
from .recipe import Recipe

__all__ = ["Stepper"]

_Part = tuple[IntArray, torch.Generator]


class Stepper:
    """Steps over some questions at a time. On a CPU a step has two halves, for two threads."""

    def __init__(self, network: nn.Module, questions: EncodedSet, recipe: Recipe) -> None:
        self._network, self._questions, self._recipe = network, questions, recipe
        self._weights = list(network.parameters())
        self._work = questions.words if questions.vectors.device.type == "cpu" else None
        self._gradients = [torch.empty_like(weight) for weight in self._weights]
        self.optimiser = Adam(self._weights)

    def generators(self, seeds: Sequence[int]) -> list[torch.Generator]:
        """What dropout draws from, for each half its own: threads come in no fixed order."""
        device = self._questions.vectors.device
        return [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def step(
        self, chosen: IntArray, rate: float, both: Hands, draws: Sequence[torch.Generator]
    ) -> Tensor:
        """Returns the loss."""
        parts = [chosen] if self._work is None else halves(chosen, self._work)
        pairs = int(self._questions.sizes[chosen].sum())

        def of(part: _Part) -> tuple[Tensor, tuple[Tensor, ...]]:
            loss = self._loss(part, len(chosen), pairs)
            return loss.detach(), torch.autograd.grad(loss, self._weights)

        done = both.each(of, list(zip(parts, draws, strict=False)))
        self._sum([gradients for _, gradients in done])
        self.optimiser.step(self._gradients, rate)
        return torch.stack([loss for loss, _ in done]).sum()

    def _loss(self, part: _Part, questions: int, pairs: int) -> Tensor:
        """The share that a part has in the loss of a step of so many questions and pairs."""
        batch = self._questions.batch(*part)
        scores = self._network(batch)
        if self._recipe.loss == "list":
            share = len(batch.sizes) / questions
            return list_loss(scores, batch.labels, batch.sizes) * share
        return point_loss(scores, batch.labels) * (len(scores) / pairs)

    def _sum(self, parts: Sequence[tuple[Tensor, ...]]) -> None:
        """In a fixed order."""
        for gradient, first, *second in zip(self._gradients, *parts, strict=True):
            if second:
                torch.add(first, *second, out=gradient)
            else:
                gradient.copy_(first)
