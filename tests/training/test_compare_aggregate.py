from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install '.[train]'")

from torch import Tensor, nn  # noqa: E402

from askline.models.light_config import CompareAggregateLayout  # noqa: E402
from askline.training.modules.compare_aggregate import _Convolutions  # noqa: E402


def _plainly(layers: nn.ModuleList, words: Tensor, inside: Tensor) -> Tensor:
    """A convolution for each width over each text by itself."""
    pooled = []
    for layer in layers:
        width = layer.get_parameter("weight").shape[2]
        padded = nn.functional.pad(words.transpose(1, 2), (width // 2, width - 1 - width // 2))
        pooled.append(layer(padded).masked_fill(~inside[:, None], -torch.inf).amax(2))
    joined: Tensor = torch.cat(pooled, dim=1)
    return joined.tanh()


@pytest.mark.parametrize("widths", [(1,), (2,), (1, 2, 3, 4), (1, 2, 3, 4, 5)], ids=str)
def test_values_and_gradients_are_those_of_conv1d_and_maximum(widths: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layers = _Convolutions(CompareAggregateLayout(gate=6, filters=4, widths=widths))
    lengths = torch.tensor([3, 1, 9, 2, 5])
    inside = torch.arange(9) < lengths[:, None]
    start = torch.randn(5, 9, 6) * inside[..., None]
    found = []
    for compute in (layers, lambda *given: _plainly(layers, *given)):
        layers.zero_grad()
        words = start.clone().requires_grad_()
        values = compute(words, inside)
        (values * torch.linspace(-1, 1, values.shape[1])).sum().backward()
        grads = [torch.clone(one.grad) for one in layers.parameters()]
        found.append([values, words.grad * inside[..., None], *grads])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
