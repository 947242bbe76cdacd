"""The loop: epochs over shuffled questions, measured on dev, resumable after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InputError
from ..models.light_config import Layout
from .checkpoint import Checkpoint
from .encoding import EncodedSet
from .hands import Hands, hands
from .measuring import DevSet
from .modules import build
from .recipe import Epoch, Recipe
from .schedule import slanted_triangular
from .stepping import Stepper

__all__ = ["Trained", "train"]


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A network after its last epoch (or with its best one's weights), and how it got there."""

    network: nn.Module
    layout: Layout
    recipe: Recipe
    on: str
    """The name of the set it was trained on."""
    history: tuple[Epoch, ...]

    @property
    def seconds(self) -> float:
        """Of training, over all epochs."""
        return sum(epoch.seconds for epoch in self.history)


def train(
    layout: Layout,
    questions: EncodedSet,
    recipe: Recipe,
    *,
    dev: DevSet | None = None,
    start: Mapping[str, Tensor] | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[], None] = lambda: None,
) -> Trained:
    """
    Train a network of this layout. The caller's random state is left as it was.

    `start` are weights to go on from, as another training left them (transfer, then adapt). Where
    the file `checkpoint` exists, training goes on after the epochs it holds. On a CPU the same
    seed gives the same weights, broken off or not; on a GPU sums come out in no fixed order.
    """
    if recipe.keep == "best" and dev is None:
        raise InputError("keep='best' needs a dev set to tell the best epoch by.")
    device = questions.vectors.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(recipe.seed)
        network = build(layout, dropout=recipe.dropout).to(device)
        if start is not None:
            network.load_state_dict(start)
        loop = _Loop(network, questions, recipe, dev, _settings(layout, questions, recipe))
        if checkpoint is not None and checkpoint.exists():
            loop.restore(checkpoint)
        for number in range(len(loop.history) + 1, recipe.epochs + 1):
            with hands(device) as both:
                loop.epoch(number, both, on_step)
            if checkpoint is not None:
                loop.state().save(checkpoint)
            on_epoch(loop.history[-1])
    if loop.best is not None:
        network.load_state_dict(loop.best)
    return Trained(network.eval(), layout, recipe, questions.name, tuple(loop.history))


def _settings(layout: Layout, questions: EncodedSet, recipe: Recipe) -> str:
    return f"{layout} {recipe} on {len(questions)} questions of {questions.name}"


class _Loop:
    """What changes from epoch to epoch."""

    def __init__(
        self,
        network: nn.Module,
        questions: EncodedSet,
        recipe: Recipe,
        dev: DevSet | None,
        settings: str,
    ) -> None:
        self.network, self.questions, self.recipe, self.dev = network, questions, recipe, dev
        self.settings = settings
        self.stepper = Stepper(network, questions, recipe)
        self.history: list[Epoch] = []
        self.best: dict[str, Tensor] | None = None

    def epoch(self, number: int, both: Hands, on_step: Callable[[], None]) -> None:
        """One pass over the questions in an order of its own, then the dev measures."""
        # Seeded here, not once for all: see Checkpoint.
        random = np.random.default_rng((self.recipe.seed, number))
        order = random.permutation(len(self.questions))
        draws = self.stepper.generators(random.integers(2**63, size=2).tolist())
        start = time.perf_counter()
        self.network.train()
        steps = [
            order[at : at + self.recipe.batch] for at in range(0, len(order), self.recipe.batch)
        ]
        losses = []
        for step, chosen in enumerate(steps):
            done = (number - 1) * len(steps) + step
            rate = self.recipe.rate * slanted_triangular(done, self.recipe.epochs * len(steps))
            losses.append(self.stepper.step(chosen, rate, both, draws))
            on_step()
        loss = float(torch.stack(losses).mean())
        seconds = time.perf_counter() - start
        measured = self.dev.measure(self.network) if self.dev else {}
        self.history.append(Epoch(number, loss, seconds, measured))
        if self.recipe.keep == "best" and self._is_best():
            self.best = deepcopy(self.network.state_dict())

    def _is_best(self) -> bool:
        values = [next(iter(epoch.dev.values())) for epoch in self.history]
        return values.index(max(values)) == len(values) - 1

    def state(self) -> Checkpoint:
        """All that the next epoch depends on."""
        return Checkpoint(
            self.settings,
            self.network.state_dict(),
            self.stepper.optimiser.state(),
            tuple(self.history),
            self.best,
        )

    def restore(self, path: Path) -> None:
        """Go back to where `state` was taken."""
        found = Checkpoint.load(path, settings=self.settings)
        self.network.load_state_dict(found.network)
        self.stepper.optimiser.restore(found.optimiser)
        self.history = list(found.history)
        self.best = None if found.best is None else dict(found.best)
