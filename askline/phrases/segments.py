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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorpusError, require_extra
from ..text.writing import replacing

__all__ = ["Rows", "Segment", "build_lists", "can_build_lists", "joined", "write_segment"]

Floats = NDArray[np.float32]
Ints = NDArray[np.integer[Any]]
_BLOCK = 2_048  # rows made real at a time: few enough to stay in a cache, four times as fast
_FULL = 8.0  # a word's greatest weight; log1p of a match hardly ever comes near
_SAMPLE = 40_000  # rows that the lists are trained on


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Phrases to write, a row each, as they are kept, and the documents they come from."""

    vectors: Iterable[NDArray[np.int8]]
    """One block after the other; they may be made while they are written."""
    scale: Floats
    words: Ints
    weights: NDArray[np.uint8]
    places: NDArray[np.int32]
    names: Sequence[str]
    texts: Sequence[bytes]

    @classmethod
    def of(
        cls, dense: Floats, words: Ints, weights: Floats, places: Ints, texts: dict[str, str]
    ) -> Rows:
        """From real numbers and the texts of the documents."""
        scale = np.maximum(np.abs(dense).max(0, initial=0), 1e-12) / np.float32(127)
        return cls(
            [np.rint(dense / scale).astype(np.int8)],
            scale.astype(np.float32),
            words,
            np.rint(np.clip(weights / _FULL, 0, 1) * 255).astype(np.uint8),
            places.astype(np.int32),
            list(texts),
            [text.encode() for text in texts.values()],
        )

    def __len__(self) -> int:
        return len(self.places)


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
            # Mapped at once: a writer may take the folder away while it is read.
            self._texts = _mapped(folder / "texts.bin")
        except (OSError, ValueError, EOFError) as error:
            raise CorpusError(
                f"{folder} is damaged ({error}). Delete the phrase index and make it anew."
            ) from error
        self._lists: Any = None
        self._numbers = {name: place for place, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def has_lists(self) -> bool:
        """Whether it is searched through inverted lists."""
        return self._lists is not None or (self.folder / "lists.faiss").is_file()

    def number(self, name: str) -> int | None:
        """The place of a document in the segment, None where it is not there."""
        return self._numbers.get(name)

    def text(self, document: int) -> str:
        """The text of a document by its place in the segment."""
        return self.blob(document).decode()

    def blob(self, document: int) -> bytes:
        """The same, as it is kept."""
        start, end = map(int, self._bounds[document : document + 2])
        return self._texts[start:end].tobytes()

    def nearest(self, question: Floats, k: int, *, probes: int) -> tuple[NDArray[np.int64], Floats]:
        """
        Rows with the highest dot products, best first, and these.

        Exact where there are no lists. With lists, those of `probes` of them by product-quantised
        scores, put in order by the vectors themselves.
        """
        scaled = question * self.scale
        rows = self._from_lists(question, 2 * k, probes)
        if rows is not None:
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

    def rescaled(self, rows: Ints, scale: Floats) -> Iterator[NDArray[np.int8]]:
        """The vectors of some rows, block by block, in another scale."""
        factor = self.scale / scale
        for at in range(0, len(rows), _BLOCK):
            block = self.vectors[rows[at : at + _BLOCK]].astype(np.float32)
            yield np.rint(block * factor).astype(np.int8)

    def _dot(self, rows: slice | NDArray[np.int64], scaled: Floats) -> Floats:
        found: Floats = self.vectors[rows].astype(np.float32) @ scaled
        return found

    def _from_lists(self, question: Floats, k: int, probes: int) -> NDArray[np.int64] | None:
        """Rows in order; None where there are no lists, or none that can be read."""
        if not self.has_lists or not can_build_lists():
            return None
        faiss = _faiss()
        if self._lists is None:
            try:
                path = str(self.folder / "lists.faiss")
                self._lists = faiss.read_index(path, faiss.IO_FLAG_MMAP)
            except RuntimeError:
                return None
        options = faiss.SearchParametersIVF(nprobe=probes)
        _, rows = self._lists.search(question[None], k, params=options)
        found: NDArray[np.int64] = np.sort(rows[0][rows[0] >= 0])
        return found


def joined(parts: Sequence[tuple[Segment, set[int]]]) -> Rows | None:
    """All phrases of segments but those of documents that are gone; None where none is left."""
    scale = np.max([segment.scale for segment, _ in parts], axis=0)
    rows, places = [], []
    names: list[str] = []
    texts: list[bytes] = []
    for segment, gone in parts:
        kept = [place for place in range(len(segment.names)) if place not in gone]
        number = np.full(len(segment.names), -1, np.int32)
        number[kept] = np.arange(len(names), len(names) + len(kept))
        rows.append(np.flatnonzero(number[segment.places[:, 0]] >= 0))
        places.append(np.array(segment.places[rows[-1]]))
        places[-1][:, 0] = number[places[-1][:, 0]]
        names += [segment.names[at] for at in kept]
        texts += [segment.blob(at) for at in kept]
    if not sum(map(len, rows)):
        return None
    own = [(segment, some) for (segment, _), some in zip(parts, rows, strict=True)]
    return Rows(
        (block for segment, some in own for block in segment.rescaled(some, scale)),
        scale,
        np.concatenate([segment.words[some] for segment, some in own]),
        np.concatenate([segment.weights[some] for segment, some in own]),
        np.concatenate(places),
        names,
        texts,
    )


def write_segment(folder: Path, rows: Rows) -> None:
    """Write every file of a segment; it counts only once the manifest names it."""
    folder.mkdir(parents=True)
    small = rows.words.max(initial=0) < 2**16
    arrays: dict[str, NDArray[Any]] = {
        "scale": rows.scale,
        "words": rows.words.astype(np.uint16 if small else np.int32),
        "weights": rows.weights,
        "places": rows.places,
        "bounds": np.cumsum([0, *map(len, rows.texts)]).astype(np.int64),
    }
    for name, array in arrays.items():
        with replacing(folder / f"{name}.npy") as stream:
            np.save(stream, array)
    with replacing(folder / "vectors.npy") as stream:
        header = {"descr": "|i1", "fortran_order": False, "shape": (len(rows), len(rows.scale))}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.writelines(block.tobytes() for block in rows.vectors)
    with replacing(folder / "texts.bin") as stream:
        stream.writelines(rows.texts)
    with replacing(folder / "names.json") as stream:
        stream.write(json.dumps(list(rows.names), ensure_ascii=False).encode())


def can_build_lists() -> bool:
    """Whether faiss is installed."""
    return find_spec("faiss") is not None


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


def _mapped(path: Path) -> NDArray[np.uint8]:
    if not path.stat().st_size:  # which cannot be mapped
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, mode="r")


def _faiss() -> Any:
    return require_extra("faiss", purpose="A large phrase index", extra="phrases")
