"""
How a transformer is trained, on what, and what it is measured on.

One step after another: gradients in pieces that fit the memory, and the optimiser.

Transfer and adapt: one network through one or more sets, resumable after each epoch.

TANDA (Garg, Vu and Moschitti, 2020) trains on a large set first and on the target afterwards. Each
`Phase` is such a step with a learning rate of its own; the weights go on, the optimiser does not.

Transfer, then adapt, as one call over question sets: what `askline train transformer` runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data import filter_questions
from ...errors import InputError
from ...types import QuestionSet
from ..checkpoint import Checkpoint, Epoch, blend
from ..distributed import Crew
from ..losses import Objective
from ..optimizer import slanted_triangular
from ..training_log import Step
from .pair_network import SCORING_BUDGET, PairNetwork, measure, pair_scores
from .pair_sets import PairSet, encode_pairs
from .sampled_lists import ListSource, Negatives, Part, Plan, SampledLists

__all__ = [
    "ADAPT",
    "TRANSFER",
    "Dev",
    "Phase",
    "Stepper",
    "Tanda",
    "TransformerRecipe",
    "tanda",
    "train_transformer",
]


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
    keep: Literal["best", "last"] = "best"
    """Which epoch's weights come out of the last phase; the best is by the first dev measure."""

    seconds: float = inf
    """Time for all epochs together: where it is short, the rate falls faster and steps are cut."""
    steps: float = inf
    """The most steps of all epochs together, at the last of which the rate has fallen."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "rate", "tokens", "clip", "seconds", "steps"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}.")
        for name in ("decay", "seed"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")
        if self.keep not in ("best", "last"):
            raise InputError(f"keep must be 'best' or 'last', got {self.keep!r}.")


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What to learn from and how. Questions without candidates must be left out before."""

    lists: ListSource
    recipe: TransformerRecipe


@dataclass(frozen=True, slots=True, eq=False)
class Dev:
    """The set that tells the best epoch, by the first of its measures."""

    questions: QuestionSet
    pairs: PairSet


_SMALLEST_BUDGET = 512

_T = TypeVar("_T")


class Stepper:
    """A network with its optimiser. When memory runs out, it goes on in smaller pieces."""

    def __init__(
        self, network: PairNetwork, budget: int, crew: Crew, on_note: Callable[[str], None]
    ) -> None:
        self.network, self.budget, self.crew, self.on_note = network, budget, crew, on_note
        self.device = next(network.parameters()).device
        self.optimiser: torch.optim.Optimizer | None = None

    def start(self, recipe: TransformerRecipe) -> torch.optim.Optimizer:
        """A new optimiser: the weights go on from phase to phase, its state does not."""
        matrices = [p for p in self.network.parameters() if p.ndim > 1]
        others = [p for p in self.network.parameters() if p.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": recipe.decay},
            {"params": others, "weight_decay": 0.0},  # biases and norms are not decayed
        ]
        fused = self.device.type == "cuda"
        self.optimiser = torch.optim.AdamW(groups, lr=recipe.rate, eps=1e-6, fused=fused)
        return self.optimiser

    def step(
        self, phase: Phase, chosen: NDArray[np.int64], rate: float, random: np.random.Generator
    ) -> Tensor:
        """Draw the lists of these questions and learn from them; returns the step's loss."""
        assert self.optimiser is not None  # `start` comes first
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad()
        loss = torch.zeros((), device=self.device)
        own = self.crew.own(chosen)
        if len(own):  # the last step of an epoch may be smaller than the crew
            lists = self._fitting(lambda: phase.lists.draw(own, random, self._scores))
            loss = self._fitting(lambda: self._gradients(phase, lists, len(chosen)))
        self.crew.add_up_gradients(self.network.parameters())
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), phase.recipe.clip)
        self.optimiser.step()
        return loss

    def _fitting(self, work: Callable[[], _T]) -> _T:
        """The work's result, tried again with less at once when memory runs out."""
        while True:
            try:
                return work()
            except torch.cuda.OutOfMemoryError:
                if self.budget // 2 < _SMALLEST_BUDGET:
                    raise
                self.budget //= 2
            torch.cuda.empty_cache()
            self.on_note(f"Out of memory: going on with {self.budget} tokens at once.")

    def _gradients(self, phase: Phase, lists: PairSet, questions: int) -> Tensor:
        """Gradients added up over pieces of whole questions; `questions` in all processes' step."""
        assert self.optimiser is not None
        self.optimiser.zero_grad()
        loss = torch.zeros((), device=self.device)
        for piece in pieces(lists, self.budget):
            rows = lists.rows(piece)
            sizes = np.diff(lists.offsets)[piece].tolist()
            labels = torch.from_numpy(lists.labels[rows]).to(self.device)
            scores = pair_scores(self.network, lists, rows, budget=self.budget)
            taught = lists.taught
            told = None if taught is None else torch.from_numpy(taught[rows]).to(self.device)
            part = phase.recipe.objective(scores, labels, sizes, told) * (len(piece) / questions)
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.detach()
        return loss

    def _scores(self, pairs: PairSet) -> NDArray[np.float32]:
        """What the network says as it is, for choosing what to learn from."""
        self.network.eval()
        with torch.inference_mode():
            rows = np.arange(len(pairs.tokens))
            budget = min(SCORING_BUDGET, 4 * self.budget)
            scores: NDArray[np.float32] = (
                pair_scores(self.network, pairs, rows, budget=budget).cpu().numpy()
            )
        self.network.train()
        return scores


def pieces(pairs: PairSet, budget: int) -> list[NDArray[np.int64]]:
    """Whole questions together while their tokens fit the budget; at least one in each piece."""
    found: list[list[int]] = []
    room = 0
    lengths = pairs.lengths(np.arange(len(pairs.tokens)))
    for question, (start, end) in enumerate(zip(pairs.offsets, pairs.offsets[1:], strict=False)):
        need = int(lengths[start:end].sum())
        if not found or need > room:
            found.append([])
            room = budget
        found[-1].append(question)
        room -= need
    return [np.array(piece) for piece in found]


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


TRANSFER = TransformerRecipe()
ADAPT = TransformerRecipe(Objective(point=1.0, list=0.0), epochs=3, rate=3e-5, batch=16)
"""Points, so that WikiQA's 1,245 questions without an answer teach too: best on its dev set."""


@dataclass(frozen=True, slots=True)
class Tanda:
    """How to go through the sets."""

    transfer: TransformerRecipe = TRANSFER
    adapt: TransformerRecipe = ADAPT
    share: float = 1.0
    """How far to go from the start to what was trained; 0.8 did best where lists are long."""
    max_tokens: int = 256
    plan: Plan = field(default_factory=Plan)
    """Of the transfer lists, where they get negatives from elsewhere."""

    def with_seed(self, seed: int) -> Tanda:
        """The same with another seed in both steps."""
        return replace(
            self, transfer=replace(self.transfer, seed=seed), adapt=replace(self.adapt, seed=seed)
        )


def tanda(
    network: PairNetwork,
    tokeniser: Any,
    how: Tanda,
    *,
    transfer: Sequence[QuestionSet] = (),
    adapt: QuestionSet | None = None,
    dev: QuestionSet | None = None,
    negatives: Path | None = None,
    checkpoint: Path | None = None,
    crew: Crew | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[Step], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train the network in place on one set, or on several as if they were one, or on both steps.

    The transfer step takes questions with an answer, the adapt step all that have candidates. With
    `negatives`, a file that is made where it is not there yet, the transfer lists are drawn anew
    for every step, with sentences from elsewhere (`SampledLists`).
    """
    phases = []
    if transfer:
        joined = tuple(
            question for part in transfer for question in filter_questions(part, "answerable")
        )
        name = " + ".join(part.name for part in transfer)
        if negatives is None:
            own = QuestionSet(name, joined)
            phases.append(_phase(own, tokeniser, how.transfer, how.max_tokens))
        else:
            mined = Negatives.at(negatives, joined)
            lists = SampledLists(name, [Part(joined, how.plan)], mined, tokeniser)
            phases.append(Phase(lists, how.transfer))
    if adapt is not None:
        kept = tuple(question for question in adapt if question.candidates)
        phases.append(_phase(QuestionSet(adapt.name, kept), tokeniser, how.adapt, how.max_tokens))
    if not phases:
        raise InputError("Expected a set to transfer from or to adapt to, got neither.")
    held = None
    if dev is not None:
        answerable = filter_questions(dev, "answerable")
        held = Dev(answerable, encode_pairs(answerable, tokeniser, max_tokens=how.max_tokens))
    start: Mapping[str, Tensor] = deepcopy(network.state_dict()) if how.share < 1 else {}
    history = train_transformer(
        network,
        phases,
        dev=held,
        checkpoint=checkpoint,
        crew=crew,
        on_epoch=on_epoch,
        on_step=on_step,
        on_note=on_note,
    )
    if how.share < 1:
        network.load_state_dict(blend(start, network.state_dict(), how.share))
    return history


def _phase(
    questions: QuestionSet, tokeniser: Any, recipe: TransformerRecipe, max_tokens: int
) -> Phase:
    return Phase(encode_pairs(questions, tokeniser, max_tokens=max_tokens), recipe)
