"""The counts that Cosinet's Table 4 prints, or rounds; frozen word vectors are not in them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="training needs torch: pip install '.[train]'")

from askline.models.light_config import (
    CompareAggregateLayout,
    CosinetLayout,
    Layout,
    RelationalCNNLayout,
)
from askline.training import parameter_count
from askline.training.modules import build

COUNTS: list[tuple[Layout, int]] = [
    (CosinetLayout(), 904_201),
    (CosinetLayout(list_layer="rnn"), 1_174_501),
    (CosinetLayout(list_layer="birnn"), 1_129_501),
    (CosinetLayout(list_layer="lstm"), 1_986_301),
    (CosinetLayout(list_layer="bilstm"), 1_806_301),
    (CompareAggregateLayout(), 2_886_601),
    (CompareAggregateLayout(list_layer="rnn"), 5_045_401),
    (CompareAggregateLayout(list_layer="birnn"), 4_865_401),
    (CompareAggregateLayout(list_layer="lstm"), 11_529_001),
    (CompareAggregateLayout(list_layer="bilstm"), 10_809_001),
    (RelationalCNNLayout(), 357_646),
    (CosinetLayout(channels=("related", "exact", "idf")), 904_201 + 2 * 2 * 5 * 300),
]


@pytest.mark.parametrize(
    ("layout", "expected"),
    COUNTS,
    ids=lambda value: (
        f"{value.kind}-{getattr(value, 'list_layer', '')}"
        if isinstance(value, Layout)
        else str(value)
    ),
)
def test_parameter_count(layout: Layout, expected: int) -> None:
    assert parameter_count(build(layout)) == expected
