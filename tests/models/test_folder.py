from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askline.errors import ModelError
from askline.models.folder import ModelFolder, check_shapes, write_folder
from askline.models.word_vectors import SHIPPED, WordVectors

VECTORS = WordVectors.from_rows(("sea",), np.ones((1, 2), np.float32))
WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(
        tmp_path / "model",
        config={"kind": "toy", "width": 3},
        tensors={"a.weight": WEIGHT.T},
        card="# A toy\n",
        vectors=VECTORS,
    )


def test_a_written_folder_is_read_back(folder: Path) -> None:
    opened = ModelFolder.open(folder, kind="toy")
    assert opened.config["width"] == 3
    assert np.array_equal(opened.tensors()["a.weight"], WEIGHT.T)
    assert np.array_equal(opened.vectors().of(["sea"]), [[1, 1]])
    assert (folder / "README.md").read_text(encoding="utf-8") == "# A toy\n"
    assert sorted(file.name for file in folder.iterdir()) == [
        "README.md",
        "config.json",
        "vectors.safetensors",
        "weights.safetensors",
    ]


def test_writing_again_replaces(folder: Path) -> None:
    write_folder(folder, config={"kind": "other"}, tensors={}, card="", vectors=VECTORS)
    assert ModelFolder.open(folder, kind="other").tensors() == {}


def test_the_shipped_vectors_are_not_copied(tmp_path: Path) -> None:
    shipped = WordVectors.from_rows(("sea",), np.ones((1, 2), np.float32), name=SHIPPED)
    path = write_folder(tmp_path, config={"kind": "toy"}, tensors={}, card="", vectors=shipped)
    assert ModelFolder.open(path, kind="toy").config["vectors"] == {"name": SHIPPED}
    assert not (path / "vectors.safetensors").exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"No model folder at .*nowhere"):
        ModelFolder.open(tmp_path / "nowhere", kind="toy")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "cosinet"}, "must hold a toy model, got 'cosinet'"),
        ({"format": 9}, "must have format 1, got 9"),
        ({"vectors": "mine"}, "must name its vectors"),
    ],
    ids=["kind", "format", "vectors"],
)
def test_a_config_of_another_kind_or_format_is_refused(
    folder: Path, change: dict[str, object], message: str
) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | change), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        ModelFolder.open(folder, kind="toy").vectors()


@pytest.mark.parametrize("text", ["{", "[]"], ids=["cut short", "a list"])
def test_a_config_must_be_a_json_object(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match="must be a JSON object"):
        ModelFolder.open(folder, kind="toy")


def test_missing_weights_and_pickles(folder: Path) -> None:
    (folder / "weights.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin, but pickled weights are never read"):
        ModelFolder.open(folder, kind="toy").tensors()


def test_a_missing_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(ModelError, match=r"No config\.json in"):
        ModelFolder.open(folder, kind="toy")


def test_truncated_weights(folder: Path) -> None:
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ModelError, match="is not a valid safetensors file"):
        ModelFolder.open(folder, kind="toy").tensors()


def test_check_shapes_names_every_difference() -> None:
    check_shapes({"a": WEIGHT}, {"a": (2, 3)}, path="x")
    with pytest.raises(ModelError) as caught:
        check_shapes({"a": WEIGHT, "c": WEIGHT}, {"a": (3, 2), "b": (1,)}, path="x")
    message = str(caught.value)
    assert "a must be (3, 2), got (2, 3)" in message
    assert "b must be (1,), got none" in message
    assert "c must be absent, got (2, 3)" in message
