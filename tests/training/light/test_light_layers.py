from __future__ import annotations

import pytest
import torch

from askline.models.light_config import ListLayerKind
from askline.training.light.light_networks import Dropout, ListLayer


def test_dropout_scales_the_kept_values() -> None:
    values = Dropout(0.25)(torch.ones(100, 100), torch.Generator().manual_seed(0))
    assert values.unique().tolist() == pytest.approx([0, 4 / 3])
    assert values.mean() == pytest.approx(1, abs=0.02)


def test_dropout_uses_only_its_generator() -> None:
    before = torch.get_rng_state()
    one, same, other = (
        Dropout(0.5)(torch.ones(50), torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("share", "training"), [(0.0, True), (0.5, False)])
def test_dropout_of_zero_draws_no_random_numbers(share: float, training: bool) -> None:
    values = torch.ones(4)
    assert Dropout(share).train(training)(values, None) is values


SIZES = (3, 1, 5, 2)


@pytest.mark.parametrize("kind", ["rnn", "birnn", "lstm", "bilstm"])
def test_list_layer_equals_torch_on_each_list(kind: ListLayerKind) -> None:
    torch.manual_seed(0)
    layer = ListLayer(kind, 6, 8)
    assert layer.reader is not None
    pairs = torch.randn(sum(SIZES), 6)
    found = []
    alone = layer.reader
    for read in (
        lambda given: layer(given, SIZES),
        lambda given: torch.cat(
            [alone(part[None])[0][0] for part in torch.split(given, list(SIZES))]
        ),
    ):
        layer.zero_grad()
        leaf = pairs.clone().requires_grad_()
        values = read(leaf)
        (values * torch.linspace(-1, 1, 8)).sum().backward()
        found.append([values, leaf.grad, *_gradients(layer)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_list_layer_none_is_the_identity() -> None:
    pairs = torch.randn(4, 6)
    assert ListLayer("none", 6, 8)(pairs, (4,)) is pairs


def _gradients(network: torch.nn.Module) -> list[torch.Tensor]:
    return [weight.grad.clone() for weight in network.parameters() if weight.grad is not None]
