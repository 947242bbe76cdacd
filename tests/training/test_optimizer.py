from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from askline.training.optimizer import Adam

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
