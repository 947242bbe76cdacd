"""Inverted lists (faiss IVF-PQ) over the vectors of a large segment, for approximate search."""

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

_FILE_NAME = "lists.faiss"
_TRAINING_ROWS = 40_000
_BLOCK_ROWS = 2_048
Floats = NDArray[np.float32]


class InvertedLists:
    """The inverted lists in a segment's folder, if there are any; opened at the first search."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE_NAME
        self._index: Any = None

    def __bool__(self) -> bool:
        return self._index is not None or self._path.is_file()

    def search(
        self, question: Floats, k: int, *, probes: int, allowed: NDArray[np.bool_] | None
    ) -> NDArray[np.int64] | None:
        """
        Approximately the `k` nearest rows, sorted by row; only `allowed` rows if it is given.

        None if there are no lists, or if they cannot be read.
        """
        if not self or not faiss_installed():
            return None
        faiss = _import_faiss()
        if self._index is None:
            try:
                self._index = faiss.read_index(str(self._path), faiss.IO_FLAG_MMAP)
            except RuntimeError:
                return None
        options: dict[str, Any] = {"nprobe": probes}
        if allowed is not None:
            options["sel"] = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        parameters = faiss.SearchParametersIVF(**options)
        rows: NDArray[np.int64] = self._index.search(question[None], k, params=parameters)[1][0]
        return np.sort(rows[rows >= 0])


def faiss_installed() -> bool:
    """Whether inverted lists can be built and searched."""
    return find_spec("faiss") is not None


def build_lists(folder: Path, vectors: NDArray[np.int8], scale: Floats, *, seed: int = 0) -> None:
    """Write the lists of a segment, with about one byte per seven numbers of a vector."""
    faiss = _import_faiss()
    count, size = vectors.shape
    parts = next(part for part in range(-(-size // 7), size + 1) if size % part == 0)
    lists = int(max(16, min(4096, 4 * np.sqrt(count))))
    # "np": without the sorted polysemous codes, which are not used and take half a minute.
    index = faiss.index_factory(size, f"IVF{lists},PQ{parts}np", faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = index.pq.cp.seed = seed
    index.cp.niter = index.pq.cp.niter = 12  # later iterations change little
    sample = np.random.default_rng(seed).permutation(count)[: max(_TRAINING_ROWS, 40 * lists)]
    index.train(vectors[np.sort(sample)].astype(np.float32) * scale)
    for at in range(0, count, _BLOCK_ROWS):
        index.add(vectors[at : at + _BLOCK_ROWS].astype(np.float32) * scale)
    faiss.write_index(index, str(folder / "lists.tmp"))
    (folder / "lists.tmp").replace(folder / _FILE_NAME)


def _import_faiss() -> Any:
    return require_extra("faiss", purpose="A large phrase index", extra="phrases")
