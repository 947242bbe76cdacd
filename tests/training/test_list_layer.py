from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install '.[train]'")

from askline.models.light_config import ListLayerKind  # noqa: E402
from askline.training.modules.list_layer import ListLayer  # noqa: E402

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
