"""The counts that Cosinet's Table 4 prints, or rounds; frozen word vectors are not in them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from askline.models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    ListLayerKind,
    RelationalCNNConfig,
)
from askline.training.light.light_networks import (
    Dropout,
    ListLayer,
    _Convolutions,
    build_network,
    parameter_count,
)


def _plainly(layers: nn.ModuleList, words: Tensor, mask: Tensor) -> Tensor:
    """A convolution for each width over each text by itself."""
    pooled = []
    for layer in layers:
        width = layer.get_parameter("weight").shape[2]
        padded = nn.functional.pad(words.transpose(1, 2), (width // 2, width - 1 - width // 2))
        pooled.append(layer(padded).masked_fill(~mask[:, None], -torch.inf).amax(2))
    joined: Tensor = torch.cat(pooled, dim=1)
    return joined.tanh()


@pytest.mark.parametrize("widths", [(1,), (2,), (1, 2, 3, 4), (1, 2, 3, 4, 5)], ids=str)
def test_values_and_gradients_are_those_of_conv1d_and_maximum(widths: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layers = _Convolutions(CompareAggregateConfig(gate=6, filters=4, widths=widths))
    lengths = torch.tensor([3, 1, 9, 2, 5])
    mask = torch.arange(9) < lengths[:, None]
    start = torch.randn(5, 9, 6) * mask[..., None]
    found = []
    for compute in (layers, lambda *given: _plainly(layers, *given)):
        layers.zero_grad()
        words = start.clone().requires_grad_()
        values = compute(words, mask)
        (values * torch.linspace(-1, 1, values.shape[1])).sum().backward()
        grads = _gradients(layers)
        assert words.grad is not None
        found.append([values, words.grad * mask[..., None], *grads])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


COUNTS: list[tuple[LightConfig, int]] = [
    (CosinetConfig(), 904_201),
    (CosinetConfig(list_layer="rnn"), 1_174_501),
    (CosinetConfig(list_layer="birnn"), 1_129_501),
    (CosinetConfig(list_layer="lstm"), 1_986_301),
    (CosinetConfig(list_layer="bilstm"), 1_806_301),
    (CompareAggregateConfig(), 2_886_601),
    (CompareAggregateConfig(list_layer="rnn"), 5_045_401),
    (CompareAggregateConfig(list_layer="birnn"), 4_865_401),
    (CompareAggregateConfig(list_layer="lstm"), 11_529_001),
    (CompareAggregateConfig(list_layer="bilstm"), 10_809_001),
    (RelationalCNNConfig(), 357_646),
    (CosinetConfig(channels=("related", "exact", "idf")), 904_201 + 2 * 2 * 5 * 300),
]


@pytest.mark.parametrize(
    ("config", "expected"),
    COUNTS,
    ids=lambda value: (
        f"{value.kind}-{getattr(value, 'list_layer', '')}"
        if isinstance(value, LightConfig)
        else str(value)
    ),
)
def test_parameter_count(config: LightConfig, expected: int) -> None:
    assert parameter_count(build_network(config)) == expected


def _gradients(network: torch.nn.Module) -> list[torch.Tensor]:
    return [weight.grad.clone() for weight in network.parameters() if weight.grad is not None]


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
