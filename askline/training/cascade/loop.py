"""
Transfer and adapt a cascade, resumable after each epoch.

Each `Phase` is a set with a recipe of its own; the weights go on from one to the next, the
optimiser does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import InputError
from ..checkpoint import Checkpoint
from ..recipe import Epoch
from ..schedule import slanted_triangular
from .lists import Drawn, ListSource
from .network import CascadeNetwork
from .reading import Reading, ReadingSet
from .recipe import CascadeRecipe
from .scoring import Dev, measure
from .steps import Texts, add_mined, piece_loss, pieces

__all__ = ["Phase", "train_cascade"]

_SMALLEST_BUDGET = 512
_FINE = 10**6  # parts of the whole that progress is counted in


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What to learn from and how."""

    lists: ListSource
    recipe: CascadeRecipe
    reading: ReadingSet | None = None
    """Its text numbers go on after those of the lists."""
    teacher: CascadeNetwork | None = None
    """A fixed network whose last classifier teaches."""

    @property
    def texts(self) -> Texts:
        """Of lists and paragraphs together."""
        table = self.lists.table
        return Texts(
            table if self.reading is None else table + self.reading.table, self.lists.template
        )


def train_cascade(
    network: CascadeNetwork,
    phases: Sequence[Phase],
    *,
    dev: Dev | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[int, int], None] = lambda _done, _of: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train in place; the network ends with the weights of the last epoch.

    Epochs are numbered through all phases, and `dev` is measured at every depth after each. Where
    the file `checkpoint` exists, training goes on after the epochs it holds, and on a CPU it ends
    with the same weights as if it had not been broken off. When a GPU runs out of memory the step
    is tried again in smaller pieces; `on_note` says so. A recipe with a time limit is not the same
    twice.
    """
    if not phases:
        raise InputError("Expected at least one set to train on, got none.")
    device = next(network.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        loop = _Loop(network, phases, dev, on_note)
        if checkpoint is not None and checkpoint.exists():
            loop.restore(checkpoint)
        while loop.at < loop.total:
            loop.epoch(on_step)
            if checkpoint is not None:
                loop.state().save(checkpoint)
            on_epoch(loop.history[-1])
    network.requires_grad_(True).eval()
    return tuple(loop.history)


class _Loop:
    """What changes from epoch to epoch."""

    def __init__(
        self,
        network: CascadeNetwork,
        phases: Sequence[Phase],
        dev: Dev | None,
        on_note: Callable[[str], None],
    ) -> None:
        self.network, self.phases, self.dev, self.on_note = network, phases, dev, on_note
        self.total = sum(phase.recipe.epochs for phase in phases)
        self.history: list[Epoch] = []
        self.budget = min(phase.recipe.tokens for phase in phases)
        self.optimiser = self._new_optimiser(phases[0].recipe)
        self.texts = phases[0].texts

    @property
    def at(self) -> int:
        """Epochs done."""
        return len(self.history)

    def epoch(self, on_step: Callable[[int, int], None]) -> None:
        """One pass over the set of the phase at hand, in an order of its own, then dev."""
        phase, within = self._place(self.at)
        recipe = phase.recipe
        self.texts = phase.texts
        if within == 0 and self.at:
            self.optimiser = self._new_optimiser(recipe)
        # Seeded here, not once for all: see Checkpoint.
        random = np.random.default_rng((recipe.seed, self.at))
        order = random.permutation(len(phase.lists))
        torch.manual_seed(int(random.integers(2**63)))
        start = time.perf_counter()
        self._wake(recipe)
        steps = [order[at : at + recipe.batch] for at in range(0, len(order), recipe.batch)]
        total = recipe.epochs * len(steps)
        losses: list[Tensor] = []
        spent = sum(epoch.seconds for epoch in self.history[self.at - within :])
        for number, chosen in enumerate(steps, within * len(steps)):
            clock = (spent + time.perf_counter() - start) / recipe.seconds
            if clock >= 1 and losses:
                break
            done = min(1.0, max(number / total, clock))
            self._set_rate(recipe, slanted_triangular(round(done * _FINE), _FINE))
            losses.append(self._step(phase, chosen, random))
            on_step(number + 1, total)
        mean = float(torch.stack(losses).mean())  # read once: reading each would wait for the GPU
        seconds = time.perf_counter() - start
        measured = measure(self.network, self.dev) if self.dev else {}
        self.history.append(Epoch(self.at + 1, mean, seconds, measured))

    def _step(self, phase: Phase, chosen: NDArray[np.int64], random: np.random.Generator) -> Tensor:
        recipe = phase.recipe
        drawn = [phase.lists.draw(place, random) for place in chosen.tolist()]
        # Another classifier's hard texts in every step, so that each meets its own.
        depth = int(random.choice(self.network.shape.depths))
        drawn = add_mined(self.network, self.texts, drawn, depth=depth)
        reading = _reading(phase, random)
        while True:
            try:
                loss = self._gradients(phase, drawn, reading)
                break
            except torch.cuda.OutOfMemoryError:
                if self.budget // 2 < _SMALLEST_BUDGET:
                    raise
                self.budget //= 2
                torch.cuda.empty_cache()
                self.on_note(f"Out of memory: going on with {self.budget} tokens at once.")
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip)
        self.optimiser.step()
        return loss

    def _gradients(self, phase: Phase, drawn: Sequence[Drawn], reading: Reading | None) -> Tensor:
        """The gradients of a whole step, added up over its pieces."""
        self.optimiser.zero_grad()
        losses = []
        for piece in pieces(self.texts.table, drawn, reading, self.budget):
            part = piece_loss(
                self.network, self.texts, piece, phase.recipe.objective, phase.teacher
            )
            part.backward()  # type: ignore[no-untyped-call]
            losses.append(part.detach())
        return torch.stack(losses).sum()

    def _wake(self, recipe: CascadeRecipe) -> None:
        """Into training, all of the network or all but its encoder."""
        self.network.train()
        self.network.encoder.train(recipe.dropout and not recipe.frozen)
        self.network.encoder.requires_grad_(not recipe.frozen)
        last = self.network.classifiers[str(self.network.shape.depths[-1])]
        last.train(not recipe.keep_last).requires_grad_(not recipe.keep_last)

    def _set_rate(self, recipe: CascadeRecipe, share: float) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = recipe.rate * share * group["times"]

    def _place(self, number: int) -> tuple[Phase, int]:
        """The phase of an epoch, both counted from 0, and the epoch's place in it."""
        for phase in self.phases:
            if number < phase.recipe.epochs:
                return phase, number
            number -= phase.recipe.epochs
        raise AssertionError("no epoch is left")  # pragma: no cover

    def _new_optimiser(self, recipe: CascadeRecipe) -> torch.optim.Optimizer:
        groups = []
        for matrix in (True, False):  # biases and norms are not decayed
            for head in (True, False):
                chosen = [
                    weight
                    for name, weight in self.network.named_parameters()
                    if (weight.ndim > 1) == matrix and name.startswith("encoder.") != head
                    if head or not recipe.frozen
                ]
                decay = recipe.decay if matrix else 0.0
                times = recipe.head_rate if head else 1.0
                groups.append({"params": chosen, "weight_decay": decay, "times": times})
        fused = next(self.network.parameters()).device.type == "cuda"
        return torch.optim.AdamW(groups, lr=recipe.rate, eps=1e-6, fused=fused)

    def _settings(self) -> str:
        return f"{self.network.shape}; " + "; ".join(
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
            None,
        )

    def restore(self, path: Path) -> None:
        """Go back to where `state` was taken."""
        found = Checkpoint.load(path, settings=self._settings())
        self.network.load_state_dict(dict(found.network))
        self.history = list(found.history)
        if self.at < self.total and self._place(self.at)[1] > 0:
            self.optimiser.load_state_dict(dict(found.optimiser))


def _reading(phase: Phase, random: np.random.Generator) -> Reading | None:
    if phase.reading is None or not phase.recipe.paragraphs:
        return None
    rows = random.integers(len(phase.reading), size=phase.recipe.paragraphs)
    return phase.reading.draw(rows, random).after(len(phase.lists.table))
