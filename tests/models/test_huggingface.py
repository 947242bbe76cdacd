from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from askline.errors import ModelError
from askline.models.huggingface import CascadeCheckpoint

from ..engine.tiny_cascades import cross_encoder_folder, tensors, tiny_config, trained_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return trained_folder(tmp_path / "trained", tiny_config())


def test_a_cascade_is_read_with_the_names_of_a_model_folder(folder: Path) -> None:
    source = CascadeCheckpoint.read(folder)
    assert source.config == tiny_config()
    expected = tensors(tiny_config())
    assert source.tensors.keys() == expected.keys()
    for name, value in expected.items():
        assert np.array_equal(source.tensors[name], value), name


def test_a_cross_encoder_is_a_cascade_with_one_classifier(tmp_path: Path) -> None:
    source = CascadeCheckpoint.read(cross_encoder_folder(tmp_path / "cross", tiny_config()))
    assert source.config.depths == (3,)
    assert not source.config.reader
    for part in ("dense.weight", "out.bias"):
        wanted = tensors(tiny_config())[f"classifiers.3.{part}"]
        assert np.array_equal(source.tensors[f"classifiers.3.{part}"], wanted)


def _set(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(config), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "roberta"}, "model_type must be 'bert', got 'roberta'"),
        ({"hidden_act": "relu"}, "hidden_act must be 'gelu', got 'relu'"),
        ({"position_embedding_type": "relative_key"}, "positions must be absolute"),
        ({"hidden_size": None}, "width must be an integer"),
        ({"num_attention_heads": 5}, "width must be a multiple of heads"),
        ({"intermediate_size": 65}, "layers.0.inner.weight must be \\(65, 32\\), got \\(64, 32\\)"),
        ({"askline_cascade": {"depths": [1, 3]}}, "no valid 'askline_cascade'"),
        ({"askline_cascade": {"depths": [1], "head": "first", "reader": True}}, "last depth"),
        ({"kind": "cascade"}, "it has been exported"),
    ],
    ids=["model", "gelu", "positions", "none", "heads", "shape", "entry", "depth", "runtime"],
)
def test_unsupported_configs_are_refused(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    _set(folder, **changes)
    with pytest.raises(ModelError, match=message):
        CascadeCheckpoint.read(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"nothing", "is not a valid safetensors file"),
        ("cascade.safetensors", b"", "is not a valid safetensors file"),
        ("config.json", b"[]", "must be a JSON object, got list"),
        ("config.json", b"{", "must be a JSON object"),
    ],
    ids=["weights", "heads", "list", "json"],
)
def test_damaged_files_are_refused(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match=message):
        CascadeCheckpoint.read(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_missing_files_are_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"No {name}"):
        CascadeCheckpoint.read(folder)


def test_pickled_weights_are_never_read(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickled weights are never read"):
        CascadeCheckpoint.read(folder)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No model folder at"):
        CascadeCheckpoint.read(tmp_path / "nowhere")


def test_an_encoder_without_a_head_is_refused(tmp_path: Path) -> None:
    folder = cross_encoder_folder(tmp_path / "cross", tiny_config())
    found = load_file(folder / "model.safetensors")
    del found["classifier.weight"]
    save_file(found, folder / "model.safetensors")
    with pytest.raises(ModelError, match="has no classifier.weight"):
        CascadeCheckpoint.read(folder)
