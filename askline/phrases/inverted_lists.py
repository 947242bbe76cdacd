"""Inverted lists over the vectors of a large segment, by faiss: a search that looks into few."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require_extra

__all__ = [
    "InvertedLists",
    "build_lists",
    "faiss_installed",
]

_NAME = "lists.faiss"
_SAMPLE = 40_000  # rows that the lists are trained on
_BLOCK = 2_048
Floats = NDArray[np.float32]


class InvertedLists:
    """Those of a segment's folder, if it has any; mapped when they are first searched."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._opened: Any = None

    def __bool__(self) -> bool:
        return self._opened is not None or self._path.is_file()

    def search(
        self, question: Floats, k: int, *, probes: int, left: NDArray[np.bool_] | None
    ) -> NDArray[np.int64] | None:
        """
        About the `k` nearest of the rows that are `left`, in the order of the rows.

        None where there are no lists, or none that can be read.
        """
        if not self or not faiss_installed():
            return None
        faiss = _faiss()
        if self._opened is None:
            try:
                self._opened = faiss.read_index(str(self._path), faiss.IO_FLAG_MMAP)
            except RuntimeError:
                return None
        options = {"nprobe": probes}
        if left is not None:
            options["sel"] = faiss.IDSelectorBitmap(np.packbits(left, bitorder="little"))
        given = faiss.SearchParametersIVF(**options)
        rows: NDArray[np.int64] = self._opened.search(question[None], k, params=given)[1][0]
        return np.sort(rows[rows >= 0])


def faiss_installed() -> bool:
    """Whether faiss is installed."""
    return find_spec("faiss") is not None


def build_lists(folder: Path, vectors: NDArray[np.int8], scale: Floats, *, seed: int = 0) -> None:
    """Of a segment's vectors, product-quantised to one byte for seven numbers."""
    faiss = _faiss()
    count, size = vectors.shape
    parts = next(part for part in range(-(-size // 7), size + 1) if size % part == 0)
    lists = int(max(16, min(4096, 4 * np.sqrt(count))))
    # np: codes in no particular order, which nothing here reads and ordering takes half a minute.
    index = faiss.index_factory(size, f"IVF{lists},PQ{parts}np", faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = index.pq.cp.seed = seed
    index.cp.niter = index.pq.cp.niter = 12  # later rounds change little
    sample = np.random.default_rng(seed).permutation(count)[: max(_SAMPLE, 40 * lists)]
    index.train(vectors[np.sort(sample)].astype(np.float32) * scale)
    for at in range(0, count, _BLOCK):
        index.add(vectors[at : at + _BLOCK].astype(np.float32) * scale)
    faiss.write_index(index, str(folder / "lists.tmp"))
    (folder / "lists.tmp").replace(folder / _NAME)


def _faiss() -> Any:
    return require_extra("faiss", purpose="A large phrase index", extra="phrases")
