from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from askline.training.light.encoded_questions import PaddedTexts
from askline.training.light.light_networks import PooledConvolution, _first_maximum


def _texts(count: int) -> tuple[PaddedTexts, Tensor]:
    torch.manual_seed(0)
    lengths = torch.randint(1, 12, (count,))
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    words = torch.randint(1, 31, mask.shape) * mask
    vectors = torch.cat([torch.zeros(1, 8), torch.randn(30, 8)])
    channels = torch.randn(*mask.shape, 2) * mask[..., None]
    return PaddedTexts(vectors, words, lengths), channels


def _plainly(layer: PooledConvolution, texts: PaddedTexts, channels: Tensor) -> Tensor:
    columns = torch.cat([texts.vectors[texts.words], channels], dim=2).transpose(1, 2)
    values = nn.functional.conv1d(
        columns,
        layer.state_dict(keep_vars=True)["weight"],
        layer.bias,
        padding=len(layer.taps) // 2,
    )
    return values.masked_fill(~texts.mask[:, None], -torch.inf).max(2).values


@pytest.mark.parametrize("width", [1, 3, 5])
def test_values_and_gradients_are_those_of_conv1d_and_maximum(width: int) -> None:
    texts, channels = _texts(70)  # more than are done at once
    layer = PooledConvolution(8, 2, 6, width)
    found = []
    for compute in (layer, lambda *given: _plainly(layer, *given)):
        layer.zero_grad()
        leaf = channels.clone().requires_grad_()
        values = compute(texts, leaf)
        (values * torch.linspace(-1, 1, 6)).sum().backward()
        found.append([values, *_gradients(layer), leaf.grad])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_texts_of_several_pairs_are_read_through_their_owner() -> None:
    texts, _ = _texts(4)
    owner = torch.tensor([2, 0, 2, 3, 1])
    channels = torch.randn(5, texts.words.shape[1], 1) * texts.mask[owner][..., None]
    layer = PooledConvolution(8, 1, 6, 5)
    repeated = PaddedTexts(texts.vectors, texts.words[owner], texts.lengths[owner])
    torch.testing.assert_close(layer(texts, channels, owner), layer(repeated, channels))


def test_of_equal_values_the_first_is_chosen() -> None:
    values = torch.tensor([[[1.0, 5.0], [2.0, 5.0], [2.0, -1.0]]])
    highest, place = _first_maximum(values)
    assert highest.tolist() == [[2.0, 5.0]]
    assert place.tolist() == [[1, 0]]


def test_gradients_of_shared_texts_equal_those_of_separate_texts() -> None:
    texts, _ = _texts(3)
    owner = torch.arange(3).repeat_interleave(20)  # far more pairs than positions
    channels = torch.randn(60, texts.words.shape[1], 2) * texts.mask[owner][..., None]
    layer = PooledConvolution(8, 2, 6, 5)
    repeated = PaddedTexts(texts.vectors, texts.words[owner], texts.lengths[owner])
    found = []
    for given in ((texts, channels, owner), (repeated, channels)):
        layer.zero_grad()
        (layer(*given) * torch.linspace(-1, 1, 6)).sum().backward()
        assert layer.taps.grad is not None
        found.append(layer.taps.grad.clone())
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


def test_weights_are_saved_and_loaded_as_those_of_conv1d() -> None:
    layer = PooledConvolution(8, 2, 6, 3)
    weights = layer.state_dict()
    assert {name: tuple(one.shape) for name, one in weights.items()} == {
        name: tuple(one.shape) for name, one in nn.Conv1d(10, 6, 3).state_dict().items()
    }
    other = PooledConvolution(8, 2, 6, 3)
    other.load_state_dict(weights)
    assert torch.equal(other.taps, layer.taps)


def _gradients(network: torch.nn.Module) -> list[torch.Tensor]:
    return [weight.grad.clone() for weight in network.parameters() if weight.grad is not None]
