from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.errors import ModelError
from askline.models.cascade_config import Adapter, CascadeConfig, check_cascade_tensors
from askline.models.encoder_config import EncoderConfig

SHAPE = EncoderConfig(layers=2, width=8, heads=2, inner=16, vocabulary=10, positions=12)
CONFIG = CascadeConfig(SHAPE, (1, 2), reader=True)
HERE = Path("here")


def _tensors(config: CascadeConfig = CONFIG) -> dict[str, Any]:
    return {name: np.zeros(shape, np.float32) for name, shape in config.shapes().items()}


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
def test_config_is_read_back(head: Any) -> None:
    config = replace(CONFIG, head=head)
    assert CascadeConfig.from_config(config.to_config(), path=HERE) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"depths": ()}, "depths must ascend"),
        ({"depths": (2, 1)}, "depths must ascend from 1 or more, got \\[2, 1\\]"),
        ({"depths": (0, 2)}, "depths must ascend"),
        ({"encoder": replace(SHAPE, block=96)}, "no blocks of attention, got 96 tokens"),
        ({"depths": (1, 3)}, "the last depth must be at most 2, the last layer, got 3"),
        ({"depths": (1,), "reader": True}, "needs the last depth to be 2"),
        ({"head": "last"}, "head must be one of first, mean, mixed, got 'last'"),
        ({"precision": "int4"}, "precision must be one of int8, float32, got 'int4'"),
        ({"encoder": replace(SHAPE, heads=3)}, "width must be a multiple of heads"),
        ({"encoder": replace(SHAPE, inner=0)}, "inner must be an integer"),
        ({"adapter": Adapter(0, 0)}, "rank must be an integer of at least 1, got 0"),
        ({"adapter": Adapter(2, 4)}, "first layer must be from 0 to 1, got 2"),
        ({"adapter": Adapter(0, 4), "reader": False}, "an adapter but no reader"),
    ],
    ids=[
        *("none", "order", "zero", "blocks", "deep", "short", "head", "precision", "heads", "size"),
        *("rank", "first layer", "no reader"),
    ],
)
def test_invalid_configs_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        replace(CONFIG, **changes)


def test_up_to_drops_classifiers_and_keeps_layers() -> None:
    whole = replace(CONFIG, depths=(1, 2), head="mixed", reader=False)
    assert (whole.pooling(1), whole.pooling(2)) == ("mean", "first")
    cut = whole.up_to(1)
    assert (cut.depths, cut.head, cut.encoder) == ((1,), "mean", whole.encoder)
    assert cut.shapes().items() <= whole.shapes().items()
    assert whole.up_to(2) == whole
    with pytest.raises(ModelError, match="The last depth must be one of 1, 2, got 3"):
        whole.up_to(3)


def test_an_adapter_is_read_back_and_omitted_if_none() -> None:
    adapted = replace(CONFIG, adapter=Adapter(1, 4), precision="int8")
    assert CascadeConfig.from_config(adapted.to_config(), path=HERE) == adapted
    assert "adapter" not in CONFIG.to_config()
    more = adapted.shapes().keys() - CONFIG.shapes().keys()
    assert {name.split(".")[2] for name in more} == {"1"}
    assert adapted.shapes()["adapter.layers.1.outer.down.weight"] == (4, 16)
    assert adapted.shapes()["adapter.layers.1.activated.scale"] == ()


@pytest.mark.parametrize("entry", [{"rank": 4}, {"first": 0, "rank": 4, "alpha": 1}, 7])
def test_an_invalid_adapter_entry_is_refused(entry: Any) -> None:
    with pytest.raises(ModelError, match="here does not describe a cascade"):
        CascadeConfig.from_config({**CONFIG.to_config(), "adapter": entry}, path=HERE)


def test_a_config_without_its_entries_is_refused() -> None:
    with pytest.raises(ModelError, match="here does not describe a cascade"):
        CascadeConfig.from_config({"depths": [1]}, path=HERE)


def test_float_tensors_fit() -> None:
    check_cascade_tensors(CONFIG, _tensors(), path=HERE)


def test_int8_tensors_need_their_scales() -> None:
    tensors = _tensors()
    tensors["layers.0.inner.weight"] = np.zeros((16, 8), np.int8)
    with pytest.raises(ModelError) as caught:
        check_cascade_tensors(CONFIG, tensors, path=HERE)
    for name in ("inner.scale must be (16,)", "middle.scale must be ()", "middle.zero must be ()"):
        assert name in str(caught.value)
    tensors["layers.0.inner.scale"] = np.zeros(16, np.float32)
    tensors["layers.0.middle.scale"] = np.array(0.1, np.float32)
    tensors["layers.0.middle.zero"] = np.array(7, np.uint8)
    tensors["layers.0.middle.smooth"] = np.ones(8, np.float32)
    check_cascade_tensors(CONFIG, tensors, path=HERE)


def test_every_tensor_that_does_not_fit_is_named() -> None:
    tensors = _tensors()
    del tensors["norm.bias"]
    tensors["reader.weight"] = np.zeros((3, 8), np.float32)
    tensors["left.over"] = np.zeros(1, np.float32)
    with pytest.raises(ModelError) as caught:
        check_cascade_tensors(CONFIG, tensors, path=HERE)
    for part in ("left.over must be absent", "norm.bias must be (8,), got none", "reader.weight"):
        assert part in str(caught.value)
