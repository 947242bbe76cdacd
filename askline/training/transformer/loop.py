"""
Transfer and adapt: one network through one or more sets, resumable after each epoch.

TANDA (Garg, Vu and Moschitti, 2020) trains on a large set first and on the target afterwards. Each
`Phase` is such a step with a learning rate of its own; the weights go on, the optimiser does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError
from ..checkpoint import Checkpoint
from ..recipe import Epoch
from ..schedule import slanted_triangular
from .crew import Crew
from .journal import Step
from .network import PairNetwork
from .recipe import Dev, Phase, TransformerRecipe
from .scoring import measure
from .stepping import Stepper

__all__ = ["Dev", "Phase", "TransformerRecipe", "train_transformer"]

_STEPS_A_NOTE = 50
_SECONDS_A_NOTE = 30.0


def train_transformer(
    network: PairNetwork,
    phases: Sequence[Phase],
    *,
    dev: Dev | None = None,
    checkpoint: Path | None = None,
    crew: Crew | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[Step], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train in place; the network ends with the weights of its best epoch.

    That is the best of the last phase by `dev`, and the last one without it. Epochs are numbered
    through all phases.

    Where the file `checkpoint` exists, training goes on after the epochs it holds, and on a CPU it
    ends with the same weights as if it had not been broken off. When a GPU runs out of memory the
    step is tried again in smaller pieces; `on_note` says so. `on_step` hears of every fiftieth, and
    of more where fifty take longer than half a minute.
    """
    if not phases:
        raise InputError("Expected at least one set to train on, got none.")
    device = next(network.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        loop = _Loop(network, phases, dev, crew or Crew(), on_step, on_note)
        if checkpoint is not None and checkpoint.exists():
            loop.restore(checkpoint)
        while loop.at < loop.total:
            loop.epoch()
            if checkpoint is not None and loop.crew.leads:
                loop.state().save(checkpoint)
            on_epoch(loop.history[-1])
    if loop.best is not None:
        network.load_state_dict(loop.best)
    network.eval()
    return tuple(loop.history)


class _Loop:
    """What changes from epoch to epoch."""

    def __init__(
        self,
        network: PairNetwork,
        phases: Sequence[Phase],
        dev: Dev | None,
        crew: Crew,
        on_step: Callable[[Step], None],
        on_note: Callable[[str], None],
    ) -> None:
        self.network, self.phases, self.dev = network, phases, dev
        self.crew, self.on_step = crew, on_step
        self.total = sum(phase.recipe.epochs for phase in phases)
        self.history: list[Epoch] = []
        self.best: Mapping[str, Tensor] | None = None
        budget = min(phase.recipe.tokens for phase in phases)
        self.stepper = Stepper(network, budget, crew, on_note)
        self.optimiser = self.stepper.start(phases[0].recipe)

    @property
    def at(self) -> int:
        """Epochs done."""
        return len(self.history)

    def epoch(self) -> None:
        """One pass over the set of the phase at hand, in an order of its own, then dev."""
        phase, within = self._place(self.at)
        if within == 0 and self.at:
            self.optimiser = self.stepper.start(phase.recipe)
        start = time.perf_counter()
        losses = self._steps(phase, within)
        loss = float(self.crew.total(losses.mean()))
        seconds = time.perf_counter() - start
        measured = measure(self.network, self.dev.questions, self.dev.pairs) if self.dev else {}
        self.history.append(Epoch(self.at + 1, loss, seconds, measured))
        self._keep_best()

    def _steps(self, phase: Phase, within: int) -> Tensor:
        """The loss of each step: (steps,)."""
        recipe = phase.recipe
        # Seeded here, not once for all: see Checkpoint. One order for all processes of a crew,
        # and draws of their own.
        order = np.random.default_rng((recipe.seed, self.at)).permutation(len(phase.lists))
        random = np.random.default_rng((recipe.seed, self.at, self.crew.rank))
        torch.manual_seed(int(random.integers(2**63)))
        steps = [order[at : at + recipe.batch] for at in range(0, len(order), recipe.batch)]
        losses: list[Tensor] = []
        self.network.train()
        spent = sum(epoch.seconds for epoch in self.history[self.at - within :])
        start = time.perf_counter() - spent
        most = min(recipe.epochs * len(steps), recipe.steps)
        noted, said = 0, time.perf_counter()
        for number, chosen in enumerate(steps):
            by_steps = (within * len(steps) + number) / most
            done = max(by_steps, (time.perf_counter() - start) / recipe.seconds)
            if done >= 1 and losses:
                break
            rate = recipe.rate * slanted_triangular(min(done, 1.0), 1)
            losses.append(self.stepper.step(phase, chosen, rate, random))
            late = time.perf_counter() - said > _SECONDS_A_NOTE
            if late or (number + 1) % _STEPS_A_NOTE == 0:
                loss = float(torch.stack(losses[noted:]).mean())
                self.on_step(Step(self.at + 1, number + 1, len(steps), loss, rate))
                noted, said = len(losses), time.perf_counter()
        return torch.stack(losses)

    def _place(self, number: int) -> tuple[Phase, int]:
        """The phase of an epoch, both counted from 0, and the epoch's place in it."""
        for phase in self.phases:
            if number < phase.recipe.epochs:
                return phase, number
            number -= phase.recipe.epochs
        raise AssertionError("no epoch is left")  # pragma: no cover

    def _keep_best(self) -> None:
        """Only the last phase counts: the epochs before it are on the way to another set."""
        recipe = self.phases[-1].recipe
        last = self.history[self.total - recipe.epochs :]
        if self.dev is None or not last or recipe.keep == "last":
            return
        values = [next(iter(epoch.dev.values())) for epoch in last]
        if values.index(max(values)) == len(values) - 1:
            self.best = deepcopy(self.network.state_dict())

    def _settings(self) -> str:
        return "; ".join(
            f"{phase.recipe} on {len(phase.lists)} questions of {phase.lists.name}"
            for phase in self.phases
        )

    def state(self) -> Checkpoint:
        """All that the next epoch depends on."""
        return Checkpoint(
            self._settings(),
            self.network.state_dict(),
            self.optimiser.state_dict(),
            tuple(self.history),
            self.best,
        )

    def restore(self, path: Path) -> None:
        """Go back to where `state` was taken."""
        found = Checkpoint.load(path, settings=self._settings())
        self.network.load_state_dict(dict(found.network))
        self.history = list(found.history)
        self.best = found.best
        if self.at < self.total and self._place(self.at)[1] > 0:
            self.optimiser.load_state_dict(dict(found.optimiser))
