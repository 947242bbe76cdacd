from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from askline.models.encoder_config import EncoderConfig
from askline.models.huggingface import from_huggingface_names

SHAPE = EncoderConfig(layers=2, width=8, heads=2, inner=16, vocabulary=10, positions=12)


def test_entries_with_defaults_are_optional() -> None:
    entry = asdict(replace(SHAPE, kinds=1, first_position=2))
    assert EncoderConfig.from_entry(entry) == replace(SHAPE, kinds=1, first_position=2)
    for name in ("norm_epsilon", "kinds", "first_position"):
        del entry[name]
    assert EncoderConfig.from_entry(entry) == SHAPE
    del entry["width"]
    with pytest.raises(KeyError, match="width"):
        EncoderConfig.from_entry(entry)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers must be an integer of at least 1, got 0"),
        ({"first_position": -1}, "first_position must be an integer of at least 0, got -1"),
        ({"heads": 3}, "width must be a multiple of heads, got 8 and 3"),
    ],
    ids=["zero", "negative", "heads"],
)
def test_invalid_sizes_are_named(changes: dict[str, int], message: str) -> None:
    assert list(replace(SHAPE, **changes).problems()) == [message]


def test_encoder_tensors_are_renamed_and_others_are_dropped() -> None:
    one = np.zeros(1, np.float32)
    found = {
        "bert.embeddings.word_embeddings.weight": one,
        "encoder.layer.1.attention.self.query.bias": one,
        "encoder.layer.1.output.LayerNorm.weight": one,
        "encoder.layer.2.output.dense.weight": one,
        "pooler.dense.weight": one,
    }
    assert list(from_huggingface_names(found, 2)) == [
        "words.weight",
        "layers.1.query.bias",
        "layers.1.output_norm.weight",
    ]
