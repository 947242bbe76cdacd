"""
A segment: the phrases of some documents as files that never change once they are written.

    vectors.npy   int8 (phrases, size)       words.npy    uint16/int32 (phrases, k)
    scale.npy     float32 (size,)            weights.npy  uint8 (phrases, k)
    places.npy    int32 (phrases, 3)         texts.bin, bounds.npy, names.json
    lists.faiss   inverted lists, in large segments alone

All are mapped, not read. `places` are the document's place in the segment, and the phrase's first
character and end in its text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorpusError, require_extra
from ..text.writing import replacing

__all__ = ["Rows", "Segment", "build_lists", "write_segment"]

Floats = NDArray[np.float32]
_BLOCK = 16_384  # rows made real at a time: 25 MB
_FULL = 8.0  # a word's greatest weight; log1p of a match hardly ever comes near
_TEXTS = 32  # documents in memory: the phrases of one question are often of few
_SAMPLE = 40_000  # rows that the lists are trained on


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Phrases to write, a row each, and the documents they come from."""

    dense: Floats
    words: NDArray[np.int32]
    weights: Floats
    places: NDArray[np.int32]
    names: Sequence[str]
    texts: Sequence[str]


class Segment:
    """An opened segment; files are mapped when they are first looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.vectors = np.load(folder / "vectors.npy", mmap_mode="r")
            self.words = np.load(folder / "words.npy", mmap_mode="r")
            self.weights = np.load(folder / "weights.npy", mmap_mode="r")
            self.places = np.load(folder / "places.npy", mmap_mode="r")
            self.scale: Floats = np.load(folder / "scale.npy")
            self._bounds = np.load(folder / "bounds.npy")
            self.names: list[str] = json.loads((folder / "names.json").read_text("utf-8"))
        except (OSError, ValueError, EOFError) as error:
            raise CorpusError(
                f"{folder} is damaged ({error}). Delete the phrase index and make it anew."
            ) from error
        self._lists: Any = None
        self._numbers = {name: place for place, name in enumerate(self.names)}
        self._text = lru_cache(maxsize=_TEXTS)(self._read)

    def __len__(self) -> int:
        return len(self.vectors)

    def number(self, name: str) -> int | None:
        """The place of a document in the segment, None where it is not there."""
        return self._numbers.get(name)

    def text(self, document: int) -> str:
        """The text of a document by its place in the segment; the last few are remembered."""
        return self._text(document)

    def _read(self, document: int) -> str:
        start, end = map(int, self._bounds[document : document + 2])
        with (self.folder / "texts.bin").open("rb") as stream:
            stream.seek(start)
            return stream.read(end - start).decode()

    def nearest(self, question: Floats, k: int, *, probes: int) -> tuple[NDArray[np.int64], Floats]:
        """
        Rows with the highest dot products, best first, and these.

        Exact where there are no lists. With lists, those of `probes` of them by product-quantised
        scores, put in order by the vectors themselves.
        """
        scaled = question * self.scale
        if (self.folder / "lists.faiss").is_file():
            rows = np.sort(self._from_lists(question, 2 * k, probes))
            scores = self._dot(rows, scaled)
        else:
            rows = np.arange(len(self))
            blocks = range(0, len(self), _BLOCK)
            scores = np.concatenate([self._dot(slice(at, at + _BLOCK), scaled) for at in blocks])
        if k < len(scores):
            kept = np.argpartition(-scores, k - 1)[:k]
            rows, scores = rows[kept], scores[kept]
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]

    def lexical(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], Floats]:
        """Words around these phrases and their weights."""
        weights = self.weights[rows].astype(np.float32) * np.float32(_FULL / 255)
        return self.words[rows].astype(np.int32), weights

    def real(self) -> Floats:
        """All vectors as real numbers, for writing them again."""
        found: Floats = self.vectors.astype(np.float32) * self.scale
        return found

    def _dot(self, rows: slice | NDArray[np.int64], scaled: Floats) -> Floats:
        found: Floats = self.vectors[rows].astype(np.float32) @ scaled
        return found

    def _from_lists(self, question: Floats, k: int, probes: int) -> NDArray[np.int64]:
        if self._lists is None:
            faiss = _faiss()
            self._lists = faiss.read_index(str(self.folder / "lists.faiss"), faiss.IO_FLAG_MMAP)
        faiss = _faiss()
        options = faiss.SearchParametersIVF(nprobe=probes)
        _, rows = self._lists.search(question[None], k, params=options)
        found: NDArray[np.int64] = rows[0][rows[0] >= 0]
        return found


def write_segment(folder: Path, rows: Rows) -> None:
    """Write every file of a segment; it counts only once the manifest names it."""
    folder.mkdir(parents=True)
    scale = np.maximum(np.abs(rows.dense).max(0, initial=0), 1e-12) / 127
    blobs = [text.encode() for text in rows.texts]
    small = rows.words.max(initial=0) < 2**16
    arrays = {
        "vectors": np.rint(rows.dense / scale).astype(np.int8),
        "scale": scale.astype(np.float32),
        "words": rows.words.astype(np.uint16 if small else np.int32),
        "weights": np.rint(np.clip(rows.weights / _FULL, 0, 1) * 255).astype(np.uint8),
        "places": rows.places.astype(np.int32),
        "bounds": np.cumsum([0, *map(len, blobs)]).astype(np.int64),
    }
    for name, array in arrays.items():
        with replacing(folder / f"{name}.npy") as stream:
            np.save(stream, array)
    with replacing(folder / "texts.bin") as stream:
        stream.write(b"".join(blobs))
    with replacing(folder / "names.json") as stream:
        stream.write(json.dumps(list(rows.names), ensure_ascii=False).encode())


def build_lists(folder: Path, *, seed: int = 0) -> None:
    """Inverted lists over a segment's vectors, product-quantised to one byte for seven numbers."""
    faiss = _faiss()
    segment = Segment(folder)
    count, size = segment.vectors.shape
    parts = next(part for part in range(-(-size // 7), size + 1) if size % part == 0)
    lists = int(max(16, min(4096, 4 * np.sqrt(count))))
    # np: codes in no particular order, which nothing here reads and ordering takes half a minute.
    index = faiss.index_factory(size, f"IVF{lists},PQ{parts}np", faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = index.pq.cp.seed = seed
    index.cp.niter = index.pq.cp.niter = 12  # later rounds change little
    sample = np.random.default_rng(seed).permutation(count)[: max(_SAMPLE, 40 * lists)]
    index.train(segment.vectors[np.sort(sample)].astype(np.float32) * segment.scale)
    for at in range(0, count, _BLOCK):
        index.add(segment.vectors[at : at + _BLOCK].astype(np.float32) * segment.scale)
    faiss.write_index(index, str(folder / "lists.tmp"))
    (folder / "lists.tmp").replace(folder / "lists.faiss")


def _faiss() -> Any:
    return require_extra("faiss", purpose="A large phrase index", extra="phrases")
