from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install '.[train]'")

from askline.training.modules.dropout import Dropout  # noqa: E402


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
