from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor

from askline.errors import MissingExtraError
from askline.training.optimizer import Adam, Distributed

RATES = (1e-2, 3e-3, 1e-3)


def _drawn(seed: int) -> list[Tensor]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=random) for shape in ((4, 3), (5,))]


def test_adam_steps_equal_those_of_torch() -> None:
    own, theirs = _drawn(0), [torch.nn.Parameter(weight) for weight in _drawn(0)]
    ours, other = Adam(own), torch.optim.Adam(theirs, fused=True)
    for seed, rate in enumerate(RATES, start=1):
        ours.step(_drawn(seed), rate)
        other.param_groups[0]["lr"] = rate
        for weight, gradient in zip(theirs, _drawn(seed), strict=True):
            weight.grad = gradient
        other.step()
    assert all(torch.equal(one, two) for one, two in zip(own, theirs, strict=True))


def test_adam_continues_from_its_state() -> None:
    through, first = _drawn(0), _drawn(0)
    whole, half = Adam(through), Adam(first)
    for seed, rate in enumerate(RATES, start=1):
        whole.step(_drawn(seed), rate)
    half.step(_drawn(1), RATES[0])
    rest = Adam(first)
    rest.load_state_dict(half.state_dict())
    for seed, rate in enumerate(RATES[1:], start=2):
        rest.step(_drawn(seed), rate)
    assert all(torch.equal(one, two) for one, two in zip(through, first, strict=True))


_PROGRAM = """
import sys, torch
from askline.training.optimizer import Adam
Adam([torch.zeros(3)]).step([torch.ones(3)], 0.1)
assert "torch._dynamo" not in sys.modules
"""


@pytest.mark.slow
def test_torch_s_compiler_is_not_loaded() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True)


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
