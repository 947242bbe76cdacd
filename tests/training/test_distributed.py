from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from askline.errors import MissingExtraError
from askline.training.distributed import Distributed


def test_a_single_process_without_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    crew = Distributed.from_environment()
    assert (crew.is_main, crew.size, crew.device) == (True, 1, None)
    assert crew.own_share(np.arange(3)).tolist() == [0, 1, 2]
    assert crew.sum(torch.ones(2)).tolist() == [1, 1]


def test_a_step_is_divided_completely() -> None:
    shares = [Distributed(rank, 3).own_share(np.arange(7)).tolist() for rank in range(3)]
    assert sorted(place for share in shares for place in share) == list(range(7))


def test_gradients_are_summed_and_a_missing_one_is_zero() -> None:
    layer = torch.nn.Linear(2, 1)
    assert layer.weight.grad is None
    layer.bias.grad = torch.ones(1)
    Distributed(0, 2, sum=lambda flat: 2 * flat).sum_gradients(layer.parameters())
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[0, 0]]
    assert layer.bias.grad.tolist() == [2]


def test_accelerate_with_one_process_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    crew = Distributed.from_environment()
    assert (crew.rank, crew.size, crew.device) == (0, 1, torch.device("cpu"))
    assert crew.sum(torch.ones(2)).tolist() == [1, 1]


def test_several_processes_without_accelerate_name_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[train\]'"):
        Distributed.from_environment()
