"""The recipe and the training task of the extractor, the teachers and the phrase encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ..checkpoint import Epoch
from ..loop import SeededOnceTask, TrainingRecipe, TrainingStep, check_not_negative, run_training
from ..optimizer import AdamW, Optimizer, ParameterGroup, slanted_triangular
from ..transformer.pair_network import autocast
from .phrase_examples import prefetch

__all__ = ["PhraseRecipe", "TrainingCallbacks", "device_of", "train_phrase_network"]

_Batch = TypeVar("_Batch")

_NEW_LAYER_FACTOR = 5
_SCHEDULE_RESOLUTION = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseRecipe(TrainingRecipe):
    """AdamW with a slanted triangular learning rate that falls to 0."""

    epochs: int = 6
    learning_rate: float = 1e-4
    """The peak for the encoder; new layers have five times as much."""
    batch_size: int = 32
    """Windows per step (for teachers: questions), with everything that belongs to them."""
    weight_decay: float = 0.01
    max_gradient_norm: float = 1.0

    def __post_init__(self) -> None:
        TrainingRecipe.__post_init__(self)
        check_not_negative(self, "weight_decay")


@dataclass(frozen=True, slots=True)
class TrainingCallbacks:
    """Functions that the loop calls, and the file to resume from."""

    on_epoch: Callable[[Epoch], None] = lambda _: None
    on_step: Callable[[TrainingStep], None] = lambda _: None
    checkpoint: Path | None = None


class _PhraseTask(SeededOnceTask[_Batch]):
    """Batches of similar length; the next ones are prepared by a thread during a step."""

    recipe: PhraseRecipe

    def __init__(
        self,
        network: nn.Module,
        batches: Callable[[np.random.Generator], Iterable[_Batch]],
        loss: Callable[[_Batch], Tensor],
        recipe: PhraseRecipe,
        steps: int,
    ) -> None:
        self.network, self.recipe = network, recipe
        self._batches, self._loss, self._steps = batches, loss, steps

    @property
    def steps_per_epoch(self) -> int:
        return self._steps

    def new_optimizer(self) -> Optimizer:
        """The encoder, and new layers with a higher rate; vectors have no weight decay."""
        recipe, groups = self.recipe, []
        for is_new in (False, True):
            for is_vector in (False, True):
                chosen = [
                    value
                    for name, value in self.network.named_parameters()
                    if name.startswith("encoder.") != is_new and (value.dim() < 2) == is_vector
                ]
                rate = recipe.learning_rate * (_NEW_LAYER_FACTOR if is_new else 1)
                decay = 0.0 if is_vector else recipe.weight_decay
                groups.append(ParameterGroup(chosen, rate, decay))
        return AdamW(
            self.network,
            groups,
            max_gradient_norm=recipe.max_gradient_norm,
            betas=(0.9, 0.98),
        )

    def schedule(self, progress: float) -> float:
        rounded = int(progress * _SCHEDULE_RESOLUTION) / _SCHEDULE_RESOLUTION
        return slanted_triangular(rounded, lowest=0.0)

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[_Batch]:  # noqa: ARG002
        yield from prefetch(self._batches(random))

    def loss(self, part: _Batch) -> Tensor:
        with autocast(device_of(self.network)):
            return self._loss(part)


def train_phrase_network(
    network: nn.Module,
    batches: Callable[[np.random.Generator], Iterable[_Batch]],
    loss: Callable[[_Batch], Tensor],
    recipe: PhraseRecipe,
    *,
    steps: int,
    settings: str,
    callbacks: TrainingCallbacks | None = None,
) -> tuple[Epoch, ...]:
    """
    Train in place. `batches` gives those of one epoch, of which there are `steps`.

    `settings` describes network and data, for the checkpoint.
    """
    calls = callbacks or TrainingCallbacks()
    return run_training(
        [_PhraseTask(network, batches, loss, recipe, steps)],
        settings=f"{settings}; {recipe}",
        checkpoint=calls.checkpoint,
        on_epoch=calls.on_epoch,
        on_step=calls.on_step,
    )


def device_of(network: nn.Module) -> torch.device:
    """The device of a network's weights."""
    return next(network.parameters()).device
