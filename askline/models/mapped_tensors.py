"""
Safetensors files, mapped into memory.

A tensor is a read-only view of the file, and only the parts that are used are read from disk: a
question that needs ten layers does not wait for the others, and processes share the pages. A mapped
file must not be overwritten in place; `atomic_write` replaces it instead.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

__all__ = ["MappedTensors", "map_tensors", "release_pages"]

_DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
_LENGTH_BYTES = 8  # of the number in front of the header


class MappedTensors(dict[str, NDArray[Any]]):
    """The tensors of a mapped file by name, and its metadata."""

    def __init__(self, mapped: mmap.mmap, metadata: Mapping[str, str]) -> None:
        super().__init__()
        self.metadata = metadata
        self._mapped = mapped

    def release_pages(self) -> None:
        """
        Stop counting the pages that were used as memory of this process.

        Tensors stay valid. The pages stay in the system's cache as long as it has room.
        """
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._mapped.madvise(mmap.MADV_DONTNEED)


def release_pages(tensors: Mapping[str, NDArray[Any]]) -> None:
    """`MappedTensors.release_pages`, if these tensors are mapped."""
    if isinstance(tensors, MappedTensors):
        tensors.release_pages()


def map_tensors(path: str | PathLike[str]) -> MappedTensors:
    """
    Map the tensors of a file.

    SafetensorError, OSError or ValueError if it is not a safetensors file of whole tensors.
    """
    with safe_open(path, framework="numpy"):
        pass  # checks the header against the size of the file
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = _LENGTH_BYTES + int.from_bytes(mapped[:_LENGTH_BYTES], "little")
    header: dict[str, Any] = json.loads(mapped[_LENGTH_BYTES:start])
    tensors = MappedTensors(mapped, header.pop("__metadata__", None) or {})
    for name, entry in header.items():
        tensors[name] = _view(mapped, start, entry["dtype"], entry["shape"], entry["data_offsets"])
    return tensors


def _view(
    mapped: mmap.mmap, start: int, dtype: str, shape: list[int], offsets: tuple[int, int]
) -> NDArray[Any]:
    if dtype not in _DTYPES:
        known = ", ".join(_DTYPES)
        raise ValueError(f"the data type of a tensor must be one of {known}, got {dtype}")
    first, last = offsets
    if first == last:
        return np.empty(shape, _DTYPES[dtype])
    view: NDArray[Any] = np.ndarray(shape, _DTYPES[dtype], mapped, start + first)
    return view
