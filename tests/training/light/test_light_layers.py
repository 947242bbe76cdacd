from __future__ import annotations

import pytest
import torch

from askline.models.light_config import ListLayerKind
from askline.training.light.light_layers import Dropout, ListLayer


def test_the_share_is_left_out_and_the_rest_made_up_for() -> None:
    values = Dropout(0.25)(torch.ones(100, 100), torch.Generator().manual_seed(0))
    assert values.unique().tolist() == pytest.approx([0, 4 / 3])
    assert values.mean() == pytest.approx(1, abs=0.02)


def test_it_draws_from_the_generator_alone() -> None:
    before = torch.get_rng_state()
    one, same, other = (
        Dropout(0.5)(torch.ones(50), torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("share", "training"), [(0.0, True), (0.5, False)])
def test_where_nothing_is_left_out_nothing_is_drawn(share: float, training: bool) -> None:
    values = torch.ones(4)
    assert Dropout(share).train(training)(values, None) is values


SIZES = (3, 1, 5, 2)


@pytest.mark.parametrize("kind", ["rnn", "birnn", "lstm", "bilstm"])
def test_lists_of_a_batch_are_read_as_torch_reads_each_alone(kind: ListLayerKind) -> None:
    torch.manual_seed(0)
    layer = ListLayer(kind, 6, 8)
    assert layer.reader is not None
    pairs = torch.randn(sum(SIZES), 6)
    found = []
    alone = layer.reader
    for read in (
        lambda given: layer(given, SIZES),
        lambda given: torch.cat([alone(part[None])[0][0] for part in torch.split(given, SIZES)]),
    ):
        layer.zero_grad()
        leaf = pairs.clone().requires_grad_()
        values = read(leaf)  # type: ignore[no-untyped-call]
        (values * torch.linspace(-1, 1, 8)).sum().backward()
        found.append([values, leaf.grad, *(torch.clone(one.grad) for one in layer.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_no_layer_hands_the_pairs_on() -> None:
    pairs = torch.randn(4, 6)
    assert ListLayer("none", 6, 8)(pairs, (4,)) is pairs
