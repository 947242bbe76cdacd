"""
Transfer and adapt: one network through one or more sets, resumable after each epoch.

TANDA (Garg, Vu and Moschitti, 2020) trains on a large set first and on the target afterwards. Each
`Phase` is such a step with a learning rate of its own; the weights go on, the optimiser does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import InputError
from ...types import QuestionSet
from ..checkpoint import Checkpoint
from ..recipe import Epoch
from ..schedule import slanted_triangular
from .network import PairNetwork
from .objectives import Objective
from .pairs import PairSet
from .scoring import measure, pair_scores

__all__ = ["Phase", "TransformerRecipe", "train_transformer"]

_SMALLEST_BUDGET = 512


@dataclass(frozen=True, slots=True)
class TransformerRecipe:
    """AdamW under a triangular rate; the values that transferred best are the defaults."""

    objective: Objective = field(default_factory=Objective)
    epochs: int = 2
    rate: float = 6e-5
    """The peak of the learning rate."""
    batch: int = 48
    """Questions a step, each with all its candidates."""
    tokens: int = 16_384
    """Padded tokens held at once; a step of more is split and its gradients are added up."""
    decay: float = 0.01
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "rate", "tokens", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}.")
        for name in ("decay", "seed"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """A set to learn from and how. Questions without candidates must be left out before."""

    pairs: PairSet
    recipe: TransformerRecipe


@dataclass(frozen=True, slots=True, eq=False)
class Dev:
    """The set that tells the best epoch, by the first of its measures."""

    questions: QuestionSet
    pairs: PairSet


def train_transformer(
    network: PairNetwork,
    phases: Sequence[Phase],
    *,
    dev: Dev | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train in place; the network ends with the weights of its best epoch.

    That is the best of the last phase by `dev`, and the last one without it. Epochs are numbered
    through all phases.

    Where the file `checkpoint` exists, training goes on after the epochs it holds, and on a CPU it
    ends with the same weights as if it had not been broken off. When a GPU runs out of memory the
    step is tried again in smaller pieces; `on_note` says so.
    """
    if not phases:
        raise InputError("Expected at least one set to train on, got none.")
    device = next(network.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        loop = _Loop(network, phases, dev, on_note)
        if checkpoint is not None and checkpoint.exists():
            loop.restore(checkpoint)
        while loop.at < loop.total:
            loop.epoch()
            if checkpoint is not None:
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
        on_note: Callable[[str], None],
    ) -> None:
        self.network, self.phases, self.dev, self.on_note = network, phases, dev, on_note
        self.total = sum(phase.recipe.epochs for phase in phases)
        self.history: list[Epoch] = []
        self.best: Mapping[str, Tensor] | None = None
        self.budget = min(phase.recipe.tokens for phase in phases)
        self.optimiser = self._new_optimiser(phases[0].recipe)

    @property
    def at(self) -> int:
        """Epochs done."""
        return len(self.history)

    def epoch(self) -> None:
        """One pass over the set of the phase at hand, in an order of its own, then dev."""
        phase, within = self._place(self.at)
        recipe = phase.recipe
        if within == 0 and self.at:
            self.optimiser = self._new_optimiser(recipe)
        # Seeded here, not once for all: see Checkpoint.
        random = np.random.default_rng((recipe.seed, self.at))
        order = random.permutation(len(phase.pairs))
        torch.manual_seed(int(random.integers(2**63)))
        start = time.perf_counter()
        self.network.train()
        steps = [order[at : at + recipe.batch] for at in range(0, len(order), recipe.batch)]
        losses = []
        for number, chosen in enumerate(steps):
            share = slanted_triangular(within * len(steps) + number, recipe.epochs * len(steps))
            losses.append(self._step(phase, chosen, recipe.rate * share))
        seconds = time.perf_counter() - start
        measured = measure(self.network, self.dev.questions, self.dev.pairs) if self.dev else {}
        self.history.append(Epoch(self.at + 1, float(np.mean(losses)), seconds, measured))
        self._keep_best()

    def _step(self, phase: Phase, chosen: NDArray[np.int64], rate: float) -> float:
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        while True:
            try:
                loss = self._gradients(phase, chosen)
                break
            except torch.cuda.OutOfMemoryError:
                if self.budget // 2 < _SMALLEST_BUDGET:
                    raise
                self.budget //= 2
                torch.cuda.empty_cache()
                self.on_note(f"Out of memory: going on with {self.budget} tokens at once.")
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), phase.recipe.clip)
        self.optimiser.step()
        return loss

    def _gradients(self, phase: Phase, chosen: NDArray[np.int64]) -> float:
        """The gradients of a whole step, added up over pieces of whole questions."""
        self.optimiser.zero_grad()
        device = next(self.network.parameters()).device
        loss = 0.0
        for piece in _pieces(phase.pairs, chosen, self.budget):
            rows = phase.pairs.rows(piece)
            sizes = np.diff(phase.pairs.offsets)[piece].tolist()
            labels = torch.from_numpy(phase.pairs.labels[rows]).to(device)
            scores = pair_scores(self.network, phase.pairs, rows, budget=self.budget)
            part = phase.recipe.objective(scores, labels, sizes) * (len(piece) / len(chosen))
            part.backward()  # type: ignore[no-untyped-call]
            loss += float(part.detach())
        return loss

    def _place(self, number: int) -> tuple[Phase, int]:
        """The phase of an epoch, both counted from 0, and the epoch's place in it."""
        for phase in self.phases:
            if number < phase.recipe.epochs:
                return phase, number
            number -= phase.recipe.epochs
        raise AssertionError("no epoch is left")  # pragma: no cover

    def _new_optimiser(self, recipe: TransformerRecipe) -> torch.optim.Optimizer:
        matrices = [p for p in self.network.parameters() if p.ndim > 1]
        others = [p for p in self.network.parameters() if p.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": recipe.decay},
            {"params": others, "weight_decay": 0.0},  # biases and norms are not decayed
        ]
        return torch.optim.AdamW(groups, lr=recipe.rate, eps=1e-6)

    def _keep_best(self) -> None:
        """Only the last phase counts: the epochs before it are on the way to another set."""
        last = self.history[self.total - self.phases[-1].recipe.epochs :]
        if self.dev is None or not last:
            return
        values = [next(iter(epoch.dev.values())) for epoch in last]
        if values.index(max(values)) == len(values) - 1:
            self.best = deepcopy(self.network.state_dict())

    def _settings(self) -> str:
        return "; ".join(
            f"{phase.recipe} on {len(phase.pairs)} questions of {phase.pairs.name}"
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


def _pieces(pairs: PairSet, chosen: NDArray[np.int64], budget: int) -> list[NDArray[np.int64]]:
    """Whole questions together while their tokens fit the budget; at least one in each piece."""
    pieces: list[list[int]] = [[]]
    room = budget
    for question in chosen.tolist():
        need = int(pairs.lengths(pairs.rows([question])).sum())
        if pieces[-1] and need > room:
            pieces.append([])
            room = budget
        pieces[-1].append(question)
        room -= need
    return [np.array(piece) for piece in pieces]
