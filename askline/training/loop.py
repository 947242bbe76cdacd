"""
The training loop that all model families share.

A family describes its training as tasks (`TrainingTask`): batches, the loss of a part of a batch,
and an optimizer. The loop owns the rest: epochs and steps, the learning-rate schedule, gradient
accumulation, the retry after an out-of-memory error, evaluation after each epoch, the choice of the
best epoch, checkpoints and exact resumption, and progress callbacks.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InputError
from .checkpoint import Checkpoint, Epoch
from .optimizer import Distributed, Optimizer, slanted_triangular

__all__ = [
    "SeededOnceTask",
    "TrainingProgress",
    "TrainingRecipe",
    "TrainingStep",
    "TrainingTask",
    "check_not_negative",
    "check_positive",
    "run_training",
]

_Batch = TypeVar("_Batch")
_Prepared = TypeVar("_Prepared")
_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

_SMALLEST_TOKEN_BUDGET = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecipe:
    """The settings that every training has. Each model family adds its own."""

    epochs: int = 1
    learning_rate: float = 1e-3
    """The peak; the schedule multiplies it by a factor from 0 to 1."""
    batch_size: int = 1
    """Examples per step. What counts as an example depends on the family."""
    seed: int = 0
    max_gradient_norm: float = math.inf
    """Gradients are scaled down to this norm; infinity leaves them as they are."""
    max_seconds: float = math.inf
    """Time for all epochs together. The schedule ends by then and the remaining steps are skipped,
    so the result depends on the speed of the machine."""
    max_steps: float = math.inf
    """Steps of all epochs together; the schedule ends with the last of them."""
    max_tokens: float = math.inf
    """Tokens in one backward pass; a larger step is split and its gradients are accumulated."""
    keep: Literal["last", "best"] = "last"
    """Which epoch's weights to keep. The best has the highest first measure on the dev set; of
    equal ones the first."""

    def __post_init__(self) -> None:
        check_positive(
            self,
            *("epochs", "learning_rate", "batch_size", "max_gradient_norm"),
            *("max_seconds", "max_steps", "max_tokens"),
        )
        check_not_negative(self, "seed")
        if self.keep not in ("last", "best"):
            raise InputError(f"keep must be 'last' or 'best', got {self.keep!r}.")


def check_positive(recipe: object, *names: str) -> None:
    """Raise InputError for the first of these fields that is not above 0."""
    for name in names:
        if not getattr(recipe, name) > 0:
            raise InputError(f"{name} must be positive, got {getattr(recipe, name)}.")


def check_not_negative(recipe: object, *names: str) -> None:
    """Raise InputError for the first of these fields that is below 0."""
    for name in names:
        if getattr(recipe, name) < 0:
            raise InputError(f"{name} must not be negative, got {getattr(recipe, name)}.")


@dataclass(frozen=True, slots=True, eq=False)
class TrainingStep:
    """One step that has just been taken. All numbers count from 1."""

    epoch: int
    """Through all tasks of the run."""
    step: int
    """In this epoch."""
    steps: int
    """In this epoch, if it is not cut short."""
    done: int
    """In this task."""
    total: int
    """In this task, if it is not cut short."""
    loss: Tensor
    """A scalar on the training device: reading it waits for the device."""
    learning_rate: float


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """Callbacks of a command that trains several networks; the first argument names the network."""

    on_epoch: Callable[[str, Epoch], None] = lambda _name, _epoch: None
    on_step: Callable[[str, TrainingStep], None] = lambda _name, _step: None
    on_note: Callable[[str], None] = lambda _note: None


class TrainingTask(ABC, Generic[_Batch, _Prepared, _Part]):
    """
    What one model family gives the loop.

    A run has one task or several on the same network, for example transfer and adapt: the weights
    carry over from one to the next, the state of the optimizer does not.
    """

    isolates_random_state: ClassVar[bool] = True
    """Whether torch's global random state is restored after the run."""
    trains_after_time_limit: ClassVar[bool] = True
    """Whether each epoch takes at least one step, even after `max_seconds`."""

    network: nn.Module
    recipe: TrainingRecipe

    @property
    @abstractmethod
    def steps_per_epoch(self) -> int:
        """Batches that one epoch has."""

    @abstractmethod
    def new_optimizer(self) -> Optimizer:
        """An optimizer without any state."""

    @abstractmethod
    def batches(self, epoch: int, random: np.random.Generator) -> Iterable[_Batch]:
        """The batches of one epoch, in order. `epoch` counts from 0 through all tasks."""

    @abstractmethod
    def prepare(self, batch: _Batch, random: np.random.Generator, max_tokens: float) -> _Prepared:
        """
        What has to be computed once per step, such as drawing hard negatives.

        It may run the network on `max_tokens` tokens at a time; if memory runs out, it is called
        again with fewer.
        """

    @abstractmethod
    def split(self, batch: _Prepared, max_tokens: float) -> Sequence[_Part]:
        """Parts of at most about `max_tokens` tokens whose losses add up to the step's loss."""

    @abstractmethod
    def loss(self, part: _Part) -> Tensor:
        """The share of a part in the loss of its step."""

    def seed_epoch(self, epoch: int) -> np.random.Generator:
        """
        The generator that an epoch draws from.

        It depends on the seed and the epoch alone, so a resumed run needs no saved generator state.
        """
        return np.random.default_rng((self.recipe.seed, epoch))

    def set_training_mode(self) -> None:
        """Called at the start of each epoch."""
        self.network.train()

    def schedule(self, progress: float) -> float:
        """The factor of the peak learning rate after this share of the steps, from 0 to 1."""
        return slanted_triangular(progress)

    def count_tokens(self, batch: _Prepared) -> int:  # noqa: ARG002
        """Tokens of a batch that `split` can split; 0 if it cannot."""
        return 0

    def random_state(self) -> dict[str, Any] | None:
        """What `seed_epoch` needs after resumption, if it depends on earlier epochs."""
        return None

    def restore_random_state(self, state: Mapping[str, Any]) -> None:
        """Set what `random_state` returned."""


class SeededOnceTask(TrainingTask[_Batch, _Batch, _Batch]):
    """
    A task whose random numbers are seeded once per run, and whose batches are not split.

    Torch's global generator keeps its state after the run, so that networks created afterwards
    depend on the seed as well.
    """

    isolates_random_state: ClassVar[bool] = False
    trains_after_time_limit: ClassVar[bool] = False

    _random: np.random.Generator | None = None

    def seed_epoch(self, epoch: int) -> np.random.Generator:  # noqa: ARG002
        """The one generator of the run."""
        if self._random is None:
            self._random = self.seed_run()
        return self._random

    def seed_run(self) -> np.random.Generator:
        """Seed torch's global generator and create one for everything else."""
        torch.manual_seed(self.recipe.seed)
        return np.random.default_rng(self.recipe.seed)

    def prepare(
        self,
        batch: _Batch,
        random: np.random.Generator,  # noqa: ARG002
        max_tokens: float,  # noqa: ARG002
    ) -> _Batch:
        """Nothing to prepare."""
        return batch

    def split(self, batch: _Batch, max_tokens: float) -> Sequence[_Batch]:  # noqa: ARG002
        """The whole batch."""
        return [batch]

    def random_state(self) -> dict[str, Any] | None:
        """States of both generators."""
        assert self._random is not None  # an epoch has been run
        state: dict[str, Any] = {
            "numpy": self._random.bit_generator.state,
            "torch": torch.get_rng_state(),
        }
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state_all()
        return state

    def restore_random_state(self, state: Mapping[str, Any]) -> None:
        """Set both generators."""
        self._random = np.random.default_rng()
        self._random.bit_generator.state = state["numpy"]
        torch.set_rng_state(state["torch"])
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])


def run_training(
    tasks: Sequence[TrainingTask[Any, Any, Any]],
    *,
    settings: str = "",
    evaluate: Callable[[], Mapping[str, float]] | None = None,
    checkpoint: Path | None = None,
    distributed: Distributed | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[TrainingStep], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train the tasks' network in place, task after task, and leave it in evaluation mode.

    `evaluate` measures the network on a dev set after each epoch. If the file `checkpoint` exists
    and was written with the same `settings`, training resumes after the epochs it holds; on a CPU
    the final weights are the same as without the interruption. After a CUDA out-of-memory error the
    step is repeated with half the tokens per pass, and `on_note` gets a message. A run with a time
    limit is not reproducible.
    """
    if not tasks:
        raise InputError("Expected at least one set to train on, got none.")
    network = tasks[0].network
    loop = _Loop(tasks, settings, evaluate, distributed or Distributed(), on_step, on_note)
    with _random_state(network, isolated=all(task.isolates_random_state for task in tasks)):
        if checkpoint is not None and checkpoint.exists():
            loop.restore(Checkpoint.load(checkpoint, settings=settings))
        while not loop.finished and loop.run_epoch():
            if checkpoint is not None and loop.distributed.is_main:
                loop.state().save(checkpoint)
            on_epoch(loop.history[-1])
    if loop.best is not None:
        network.load_state_dict(dict(loop.best))
    network.eval()
    return tuple(loop.history)


def _random_state(network: nn.Module, *, isolated: bool) -> AbstractContextManager[None]:
    if not isolated:
        return nullcontext()
    device = next(network.parameters()).device
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


class _Loop:
    """The state that changes from epoch to epoch."""

    def __init__(
        self,
        tasks: Sequence[TrainingTask[Any, Any, Any]],
        settings: str,
        evaluate: Callable[[], Mapping[str, float]] | None,
        distributed: Distributed,
        on_step: Callable[[TrainingStep], None],
        on_note: Callable[[str], None],
    ) -> None:
        self.tasks, self.settings, self.evaluate = tasks, settings, evaluate
        self.distributed, self.on_step, self.on_note = distributed, on_step, on_note
        self.network = tasks[0].network
        self.total_epochs = sum(task.recipe.epochs for task in tasks)
        self.max_tokens = min(task.recipe.max_tokens for task in tasks)
        self.history: list[Epoch] = []
        self.best: Mapping[str, Tensor] | None = None
        self.optimizer = tasks[0].new_optimizer()

    @property
    def finished(self) -> bool:
        return len(self.history) >= self.total_epochs

    def run_epoch(self) -> bool:
        """One pass over the batches of the current task, then the evaluation; False if no time."""
        epoch = len(self.history)
        task, within = self._place(epoch)
        if within == 0 and epoch:
            self.optimizer = task.new_optimizer()
        start = time.perf_counter()
        losses = self._run_steps(task, epoch, within)
        if not losses:
            return False
        # Read once: reading each loss would wait for the device at every step.
        loss = float(self.distributed.sum(torch.stack(losses).mean()))
        seconds = time.perf_counter() - start
        measured = self.evaluate() if self.evaluate is not None else {}
        self.history.append(Epoch(epoch + 1, loss, seconds, measured))
        self._keep_best()
        return True

    def _run_steps(
        self, task: TrainingTask[Any, Any, Any], epoch: int, within: int
    ) -> list[Tensor]:
        recipe, steps = task.recipe, task.steps_per_epoch
        total = min(recipe.epochs * steps, recipe.max_steps)
        spent = sum(each.seconds for each in self.history[epoch - within :])
        random = task.seed_epoch(epoch)
        start = time.perf_counter()
        task.set_training_mode()
        losses: list[Tensor] = []
        for number, batch in enumerate(task.batches(epoch, random)):
            done = within * steps + number
            elapsed = spent + time.perf_counter() - start
            progress = max(done / total, elapsed / recipe.max_seconds)
            if progress >= 1 and (losses or not task.trains_after_time_limit):
                break
            factor = task.schedule(min(progress, 1.0))
            losses.append(self._run_step(task, batch, factor, random))
            rate = recipe.learning_rate * factor
            whole = recipe.epochs * steps
            self.on_step(
                TrainingStep(epoch + 1, number + 1, steps, done + 1, whole, losses[-1], rate)
            )
        return losses

    def _run_step(
        self,
        task: TrainingTask[Any, Any, Any],
        batch: Any,
        factor: float,
        random: np.random.Generator,
    ) -> Tensor:
        prepared = self._retry(lambda: task.prepare(batch, random, self.max_tokens), 0)
        loss = self._retry(
            lambda: self.optimizer.accumulate(task.split(prepared, self.max_tokens), task.loss),
            task.count_tokens(prepared),
        )
        self.optimizer.step(factor)
        return loss

    def _retry(self, work: Callable[[], _Result], tokens: int) -> _Result:
        """The result of `work`, repeated with half the token budget when memory runs out."""
        while True:
            try:
                return work()
            except torch.cuda.OutOfMemoryError:
                budget = self.max_tokens if math.isfinite(self.max_tokens) else tokens
                if budget // 2 < _SMALLEST_TOKEN_BUDGET:
                    raise
                self.max_tokens = int(budget) // 2
            torch.cuda.empty_cache()
            self.on_note(f"Out of memory: continuing with {self.max_tokens} tokens per pass.")

    def _place(self, epoch: int) -> tuple[TrainingTask[Any, Any, Any], int]:
        """The task of an epoch and the epoch's place in it, both counted from 0."""
        for task in self.tasks:
            if epoch < task.recipe.epochs:
                return task, epoch
            epoch -= task.recipe.epochs
        raise AssertionError("no epoch is left")  # pragma: no cover

    def _keep_best(self) -> None:
        """Only epochs of the last task count: the earlier ones train on another set."""
        recipe = self.tasks[-1].recipe
        last = self.history[self.total_epochs - recipe.epochs :]
        if self.evaluate is None or not last or recipe.keep == "last":
            return
        values = [next(iter(epoch.dev.values())) for epoch in last]
        if values.index(max(values)) == len(values) - 1:
            self.best = deepcopy(self.network.state_dict())

    def state(self) -> Checkpoint:
        """Everything that the next epoch depends on."""
        task, _ = self._place(len(self.history) - 1)
        return Checkpoint(
            settings=self.settings,
            network=self.network.state_dict(),
            optimizer=self.optimizer.state_dict(),
            history=tuple(self.history),
            best=self.best,
            random=task.random_state(),
        )

    def restore(self, found: Checkpoint) -> None:
        """Continue from a checkpoint."""
        self.network.load_state_dict(dict(found.network))
        self.history = list(found.history)
        self.best = found.best
        if found.random is not None:
            self._place(len(self.history) - 1)[0].restore_random_state(found.random)
        if not self.finished and self._place(len(self.history))[1] > 0:
            self.optimizer.load_state_dict(found.optimizer)
