from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from askline.errors import InputError, ModelError
from askline.models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    RelationalCNNConfig,
)

CONFIGS = [
    CosinetConfig(),
    CosinetConfig(64, list_layer="bilstm", channels=("related", "exact"), vector_scale=0.5),
    CompareAggregateConfig(list_layer="rnn", widths=(1, 3)),
    RelationalCNNConfig(mark=3),
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_config_survives_json(config: LightConfig) -> None:
    entries = json.loads(json.dumps({**config.to_config(), "format": 1, "tokeniser": "x"}))
    assert type(config).from_config(entries) == config


def test_config_of_another_network_is_refused() -> None:
    with pytest.raises(ModelError, match="Expected a cosinet model, got 'relational-cnn'"):
        CosinetConfig.from_config(RelationalCNNConfig().to_config())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CosinetConfig(width=4), "width must be odd, got 4"),
        (lambda: CosinetConfig(0), "dimensions must be at least 1, got 0"),
        (lambda: CosinetConfig(filters=0), "filters must be at least 1, got 0"),
        (lambda: CosinetConfig(vector_scale=0.0), "vector_scale must be above 0, got 0.0"),
        (lambda: CosinetConfig(channels=("exactly",)), "No channel 'exactly'.*'exact'"),
        (
            lambda: CompareAggregateConfig(list_layer="gru"),  # type: ignore[arg-type]
            "No list layer 'gru'. Known: bilstm, birnn, lstm, none, rnn",
        ),
    ],
    ids=["width", "dimensions", "filters", "scale", "channel", "list layer"],
)
def test_wrong_config_is_refused(make: Callable[[], LightConfig], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("config", "reads", "pair"),
    [
        (CosinetConfig(channels=("idf",)), ("idf",), 600),
        (CompareAggregateConfig(), (), 3000),
        (RelationalCNNConfig(), ("exact", "exact_idf"), 205),
    ],
    ids=["cosinet", "compare-aggregate", "relational-cnn"],
)
def test_input_channels_and_pair_size(
    config: CosinetConfig | CompareAggregateConfig | RelationalCNNConfig,
    reads: tuple[str, ...],
    pair: int,
) -> None:
    assert (config.input_channels, config.pair_size) == (reads, pair)
