from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from askline.models.mapped_tensors import map_tensors

TENSORS: dict[str, NDArray[Any]] = {
    "half": np.arange(6, dtype=np.float16).reshape(2, 3),
    "bytes": np.arange(-3, 4, dtype=np.int8),
    "number": np.array(2.5, np.float32),
    "empty": np.empty((0, 4), np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(TENSORS, tmp_path / "a.safetensors", {"name": "four"})
    return tmp_path / "a.safetensors"


def test_tensors_are_those_that_the_library_reads(path: Path) -> None:
    found = map_tensors(path)
    expected = load_file(path)
    assert found.metadata == {"name": "four"}
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        assert np.array_equal(found[name], value)


def test_tensors_cannot_be_changed_and_outlive_the_file(path: Path) -> None:
    found = map_tensors(path)
    path.unlink()
    found.release_pages()
    assert found["bytes"].tolist() == TENSORS["bytes"].tolist()
    with pytest.raises(ValueError, match="read-only"):
        found["bytes"][0] = 1


@pytest.mark.parametrize("content", [b"", b"\x09", b"\xff" * 64], ids=["empty", "short", "noise"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b").write_bytes(content)
    with pytest.raises((SafetensorError, ValueError)):
        map_tensors(tmp_path / "b")


def test_a_data_type_that_numpy_does_not_have_is_named(tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    (tmp_path / "c").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(ValueError, match="must be one of .*F32.*, got BF16"):
        map_tensors(tmp_path / "c")
