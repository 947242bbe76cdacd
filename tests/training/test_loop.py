"""The training loop with the smallest task that it can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from askline.errors import InputError
from askline.training.checkpoint import Epoch
from askline.training.loop import (
    SeededOnceTask,
    TrainingRecipe,
    TrainingStep,
    TrainingTask,
    run_training,
)
from askline.training.optimizer import AdamW, Optimizer, ParameterGroup

RECIPE = TrainingRecipe(epochs=4, learning_rate=0.1, batch_size=3, max_gradient_norm=1.0)
ROWS = torch.randn(10, 5, generator=torch.Generator().manual_seed(0))


class KilledError(Exception):
    pass


def _optimizer(network: nn.Module, recipe: TrainingRecipe) -> Optimizer:
    groups = [ParameterGroup(list(network.parameters()), recipe.learning_rate)]
    return AdamW(network, groups, max_gradient_norm=recipe.max_gradient_norm)


class _PerEpoch(TrainingTask[np.ndarray, np.ndarray, tuple[np.ndarray, float]]):
    """Learns to output 0, with dropout, in parts of at most `max_tokens` rows."""

    def __init__(self, network: nn.Module, recipe: TrainingRecipe, fits: int = 100) -> None:
        self.network, self.recipe, self.fits = network, recipe, fits

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(ROWS) // self.recipe.batch_size)

    def new_optimizer(self) -> Optimizer:
        return _optimizer(self.network, self.recipe)

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[np.ndarray]:
        order, size = random.permutation(len(ROWS)), self.recipe.batch_size
        torch.manual_seed(epoch)
        yield from (order[at : at + size] for at in range(0, len(order), size))

    def prepare(
        self, batch: np.ndarray, random: np.random.Generator, max_tokens: float
    ) -> np.ndarray:
        return batch

    def split(self, batch: np.ndarray, max_tokens: float) -> list[tuple[np.ndarray, float]]:
        size = int(min(len(batch), max_tokens))
        parts = [batch[at : at + size] for at in range(0, len(batch), size)]
        return [(part, len(part) / len(batch)) for part in parts]

    def loss(self, part: tuple[np.ndarray, float]) -> Tensor:
        rows, share = part
        if len(rows) > self.fits:
            raise torch.cuda.OutOfMemoryError
        loss: Tensor = self.network(ROWS[rows]).square().mean() * share
        return loss


class _PerRun(SeededOnceTask[np.ndarray]):
    """The same with one generator for the whole run."""

    def __init__(self, network: nn.Module, recipe: TrainingRecipe) -> None:
        self.network, self.recipe = network, recipe

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(ROWS) // self.recipe.batch_size)

    def new_optimizer(self) -> Optimizer:
        return _optimizer(self.network, self.recipe)

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[np.ndarray]:
        order, size = random.permutation(len(ROWS)), self.recipe.batch_size
        yield from (order[at : at + size] for at in range(0, len(order), size))

    def loss(self, part: np.ndarray) -> Tensor:
        loss: Tensor = self.network(ROWS[part]).square().mean()
        return loss


def _network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5), nn.Linear(4, 1))


def _weights(network: nn.Module) -> list[float]:
    return [
        number for value in network.state_dict().values() for number in value.flatten().tolist()
    ]


@pytest.mark.parametrize("task", [_PerEpoch, _PerRun])
@pytest.mark.parametrize("stop", [1, 3])
def test_an_interrupted_run_ends_with_the_same_weights(
    tmp_path: Path, task: type[_PerEpoch] | type[_PerRun], stop: int
) -> None:
    whole = _network()
    expected = run_training([task(whole, RECIPE)])

    def kill(epoch: Epoch) -> None:
        if epoch.number == stop:
            raise KilledError

    path = tmp_path / "state.pt"
    with pytest.raises(KilledError):
        run_training([task(_network(), RECIPE)], checkpoint=path, on_epoch=kill)
    again = _network()
    torch.rand(7)  # the state of the global generator does not matter
    history = run_training([task(again, RECIPE)], checkpoint=path)
    assert [epoch.loss for epoch in history] == [epoch.loss for epoch in expected]
    assert _weights(again) == _weights(whole)
    assert run_training([task(again, RECIPE)], checkpoint=path) == history  # nothing is left


def test_a_checkpoint_with_other_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    run_training([_PerEpoch(_network(), RECIPE)], settings="one", checkpoint=path)
    with pytest.raises(InputError, match="other settings"):
        run_training([_PerEpoch(_network(), RECIPE)], settings="other", checkpoint=path)


def test_steps_are_reported_with_their_place_and_learning_rate() -> None:
    steps: list[TrainingStep] = []
    run_training([_PerEpoch(_network(), RECIPE)], on_step=steps.append)
    assert [(step.epoch, step.step) for step in steps[:5]] == [
        (1, 1),
        (1, 2),
        (1, 3),
        (1, 4),
        (2, 1),
    ]
    assert [step.done for step in steps] == list(range(1, 17))
    assert {(step.steps, step.total) for step in steps} == {(4, 16)}
    rates = [step.learning_rate for step in steps]
    assert max(rates) == pytest.approx(0.1, rel=0.1)
    assert rates[-1] < 0.02


def test_most_steps_end_the_run() -> None:
    steps: list[TrainingStep] = []
    recipe = replace(RECIPE, max_steps=6)
    run_training([_PerRun(_network(), recipe)], on_step=steps.append)
    assert len(steps) == 6


def test_out_of_memory_is_retried_with_fewer_tokens() -> None:
    notes: list[str] = []
    wide = replace(RECIPE, epochs=1, max_tokens=4096)
    with pytest.raises(torch.cuda.OutOfMemoryError):  # 512 is the smallest budget
        run_training([_PerEpoch(_network(), wide, fits=2)], on_note=notes.append)
    assert [note.split()[5] for note in notes] == ["2048", "1024", "512"]


def test_the_best_epoch_of_the_last_task_is_kept() -> None:
    network = _network()
    states: list[list[float]] = []
    values = iter([9.0, 9.0, 1.0, 3.0, 3.0, 2.0])

    def evaluate() -> dict[str, float]:
        states.append(_weights(network))
        return {"MAP": next(values)}

    first = replace(RECIPE, epochs=2)
    tasks = [_PerEpoch(network, first), _PerEpoch(network, replace(RECIPE, keep="best"))]
    history = run_training(tasks, evaluate=evaluate)
    assert [epoch.number for epoch in history] == [1, 2, 3, 4, 5, 6]
    assert _weights(network) == states[3]  # the first of equals


def test_the_random_state_is_restored_only_by_tasks_that_isolate_it() -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    network = _network()
    torch.manual_seed(1)
    run_training([_PerEpoch(network, RECIPE)])
    assert torch.rand(1) == expected
    results = []
    for seed in (4, 5):
        torch.manual_seed(seed)
        run_training([_PerRun(_network(), RECIPE)])
        results.append(torch.rand(1))
    assert results[0] == results[1]


def test_a_run_without_tasks_is_refused() -> None:
    with pytest.raises(InputError, match="at least one set"):
        run_training([])
