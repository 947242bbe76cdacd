from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from askline.errors import InputError, ModelError
from askline.models.light_config import (
    CompareAggregateLayout,
    CosinetLayout,
    Layout,
    RelationalCNNLayout,
)

LAYOUTS = [
    CosinetLayout(),
    CosinetLayout(64, list_layer="bilstm", channels=("related", "exact"), vector_scale=0.5),
    CompareAggregateLayout(list_layer="rnn", widths=(1, 3)),
    RelationalCNNLayout(mark=3),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layout_survives_its_config(layout: Layout) -> None:
    config = json.loads(json.dumps({**layout.as_config(), "format": 1, "tokeniser": "x"}))
    assert type(layout).from_config(config) == layout


def test_config_of_another_network_is_refused() -> None:
    with pytest.raises(ModelError, match="Expected a cosinet model, got 'relational-cnn'"):
        CosinetLayout.from_config(RelationalCNNLayout().as_config())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CosinetLayout(width=4), "width must be odd, got 4"),
        (lambda: CosinetLayout(0), "dimensions must be at least 1, got 0"),
        (lambda: CosinetLayout(filters=0), "filters must be at least 1, got 0"),
        (lambda: CosinetLayout(vector_scale=0.0), "vector_scale must be above 0, got 0.0"),
        (lambda: CosinetLayout(channels=("exactly",)), "No channel 'exactly'.*'exact'"),
        (
            lambda: CompareAggregateLayout(list_layer="gru"),  # type: ignore[arg-type]
            "No list layer 'gru'. Known: bilstm, birnn, lstm, none, rnn",
        ),
    ],
    ids=["width", "dimensions", "filters", "scale", "channel", "list layer"],
)
def test_wrong_layout_is_refused(make: Callable[[], Layout], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("layout", "reads", "pair"),
    [
        (CosinetLayout(channels=("idf",)), ("idf",), 600),
        (CompareAggregateLayout(), (), 3000),
        (RelationalCNNLayout(), ("exact", "exact_idf"), 205),
    ],
    ids=["cosinet", "compare-aggregate", "relational-cnn"],
)
def test_what_a_network_reads_and_makes_of_a_pair(
    layout: CosinetLayout | CompareAggregateLayout | RelationalCNNLayout,
    reads: tuple[str, ...],
    pair: int,
) -> None:
    assert (layout.reads, layout.pair) == (reads, pair)
