"""The counts that Cosinet's Table 4 prints, or rounds; frozen word vectors are not in them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from askline.models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    RelationalCNNConfig,
)
from askline.training.light.light_networks import _Convolutions, build_network, parameter_count


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
