"""
Segments, the files of a phrase index. A segment never changes once it is written.

A large segment has inverted lists (faiss IVF-PQ) over its vectors, for approximate search.

    vectors.npy   int8 (phrases, size)       words.npy    uint16 or int32 (phrases, k)
    scale.npy     float32 (size,)            weights.npy  uint8 (phrases, k)
    places.npy    int32 (phrases, 3)         texts.bin, bounds.npy, names.json
    lists.faiss   inverted lists, only in large segments

All files are memory-mapped. A row of `places` is the position of the document in the segment, and
the first character and the end of the phrase in its text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorpusError, InputError, require_extra
from ..text.atomic_write import atomic_write
from .phrase_model import EncodedPhrases

__all__ = [
    "InvertedLists",
    "Segment",
    "SegmentData",
    "build_lists",
    "dequantize_weights",
    "faiss_installed",
    "merge_segments",
    "quantize_weights",
    "write_segment",
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


def build_lists(folder: Path, vectors: NDArray[np.int8], scale: Floats) -> None:
    """Write the lists of a segment, with about one byte per seven numbers of a vector."""
    faiss = _import_faiss()
    count, size = vectors.shape
    parts = next(part for part in range(-(-size // 7), size + 1) if size % part == 0)
    lists = int(max(16, min(4096, 4 * np.sqrt(count))))
    # "np": without the sorted polysemous codes, which are not used and take half a minute.
    index = faiss.index_factory(size, f"IVF{lists},PQ{parts}np", faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = index.pq.cp.seed = 0
    index.cp.niter = index.pq.cp.niter = 12  # later iterations change little
    sample = np.random.default_rng(0).permutation(count)[: max(_TRAINING_ROWS, 40 * lists)]
    index.train(vectors[np.sort(sample)].astype(np.float32) * scale)
    for at in range(0, count, _BLOCK_ROWS):
        index.add(vectors[at : at + _BLOCK_ROWS].astype(np.float32) * scale)
    faiss.write_index(index, str(folder / "lists.tmp"))
    (folder / "lists.tmp").replace(folder / _FILE_NAME)


def _import_faiss() -> Any:
    return require_extra("faiss", purpose="A large phrase index", extra="phrases")


Ints = NDArray[np.integer[Any]]
# rows converted at a time: a block that fits a CPU cache is 4 times as fast
_MAX_WORD_WEIGHT = 8.0  # stored as 255; log1p of a match is hardly ever as large


@dataclass(frozen=True, slots=True, eq=False)
class SegmentData:
    """The content of a segment to be written: phrases in rows, and their documents."""

    vectors: Iterable[NDArray[np.int8]]
    """Blocks of rows, which may be computed while they are written."""
    scale: Floats
    words: Ints
    weights: NDArray[np.uint8]
    places: NDArray[np.int32]
    names: Sequence[str]
    texts: Sequence[bytes]

    @classmethod
    def quantize(cls, documents: Sequence[tuple[str, str, EncodedPhrases]]) -> SegmentData:
        """From the name, the text and the phrases of documents; each has at least one phrase."""
        encoded = [phrases for _, _, phrases in documents]
        highest = np.max([phrases.dense.max(0) for phrases in encoded], axis=0)
        lowest = np.min([phrases.dense.min(0) for phrases in encoded], axis=0)
        scale = np.maximum(np.maximum(highest, -lowest), 1e-12) / np.float32(127)
        weights = np.concatenate([phrases.weights for phrases in encoded])
        places = [
            (document, phrase.start, phrase.end)
            for document, phrases in enumerate(encoded)
            for phrase in phrases.phrases
        ]
        return cls(
            (block for phrases in encoded for block in _quantized_blocks(phrases.dense, scale)),
            scale.astype(np.float32),
            np.concatenate([phrases.words for phrases in encoded]),
            quantize_weights(weights),
            np.array(places, np.int32),
            [name for name, _, _ in documents],
            [_encode_text(name, text) for name, text, _ in documents],
        )

    def __len__(self) -> int:
        return len(self.places)


class Segment:
    """An opened segment. All files are mapped at once, because a writer may delete the folder."""

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
            self._texts = _map_bytes(folder / "texts.bin")
        except (OSError, ValueError, EOFError) as error:
            raise CorpusError(
                f"{folder} is damaged ({error}). Delete the phrase index and create it again."
            ) from error
        self._lists = InvertedLists(folder)
        self._last_text: tuple[int, str] | None = None  # cached: many hits are in one document
        self._positions = {name: position for position, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def has_lists(self) -> bool:
        """Whether it is searched through inverted lists."""
        return bool(self._lists)

    def build_lists(self) -> None:
        """Write inverted lists, which later searches use."""
        build_lists(self.folder, self.vectors, self.scale)

    def position(self, name: str) -> int | None:
        """The position of a document in the segment; None if it is not in it."""
        return self._positions.get(name)

    def text(self, document: int) -> str:
        """The text of the document at a position."""
        cached = self._last_text
        if cached is None or cached[0] != document:
            cached = self._last_text = document, self.text_bytes(document).decode()
        return cached[1]

    def text_bytes(self, document: int) -> bytes:
        """The text of the document at a position, in UTF-8."""
        start, end = map(int, self._bounds[document : document + 2])
        return self._texts[start:end].tobytes()

    def count_phrases(self, documents: Collection[int]) -> int:
        """The number of phrases of the documents at these positions."""
        return int(np.isin(self.places[:, 0], list(documents)).sum()) if documents else 0

    def nearest(
        self, question: Floats, k: int, *, probes: int, deleted: Collection[int] = ()
    ) -> tuple[NDArray[np.int64], Floats]:
        """
        The rows with the highest dot products, best first, and the products.

        Phrases of the documents at the positions `deleted` are left out. Without inverted lists the
        search is exact. With them, `probes` lists are searched by product-quantized scores, and the
        result is sorted by the exact ones.
        """
        scaled = question * self.scale
        allowed = ~np.isin(self.places[:, 0], list(deleted)) if deleted else None
        rows = self._lists.search(question, 2 * k, probes=probes, allowed=allowed)
        if rows is not None:
            scores = self._dot(rows, scaled)
        else:
            blocks = range(0, len(self), _BLOCK_ROWS)
            scores = np.concatenate(
                [self._dot(slice(at, at + _BLOCK_ROWS), scaled) for at in blocks]
            )
            rows = np.arange(len(self)) if allowed is None else np.flatnonzero(allowed)
            scores = scores if allowed is None else scores[rows]
        if k < len(scores):
            kept = np.argpartition(-scores, k - 1)[:k]
            rows, scores = rows[kept], scores[kept]
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]

    def context_words(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], Floats]:
        """The words around the phrases in these rows, and their weights."""
        return self.words[rows].astype(np.int32), dequantize_weights(self.weights[rows])

    def rescaled_blocks(self, rows: Ints, scale: Floats) -> Iterator[NDArray[np.int8]]:
        """The vectors of some rows in another scale, in blocks."""
        factor = self.scale / scale
        for at in range(0, len(rows), _BLOCK_ROWS):
            block = self.vectors[rows[at : at + _BLOCK_ROWS]].astype(np.float32)
            yield np.rint(block * factor).astype(np.int8)

    def _dot(self, rows: slice | NDArray[np.int64], scaled: Floats) -> Floats:
        products: Floats = self.vectors[rows].astype(np.float32) @ scaled
        return products


def merge_segments(segments: Sequence[tuple[Segment, set[int]]]) -> SegmentData | None:
    """
    All phrases of segments, without the documents at the given deleted positions of each.

    None if no phrase is left.
    """
    scale = np.max([segment.scale for segment, _ in segments], axis=0)
    rows, places = [], []
    names: list[str] = []
    texts: list[bytes] = []
    for segment, deleted in segments:
        kept = [position for position in range(len(segment.names)) if position not in deleted]
        new_position = np.full(len(segment.names), -1, np.int32)
        new_position[kept] = np.arange(len(names), len(names) + len(kept))
        rows.append(np.flatnonzero(new_position[segment.places[:, 0]] >= 0))
        places.append(np.array(segment.places[rows[-1]]))
        places[-1][:, 0] = new_position[places[-1][:, 0]]
        names += [segment.names[position] for position in kept]
        texts += [segment.text_bytes(position) for position in kept]
    if not sum(map(len, rows)):
        return None
    selected = [
        (segment, kept_rows) for (segment, _), kept_rows in zip(segments, rows, strict=True)
    ]
    return SegmentData(
        (block for segment, some in selected for block in segment.rescaled_blocks(some, scale)),
        scale,
        np.concatenate([segment.words[some] for segment, some in selected]),
        np.concatenate([segment.weights[some] for segment, some in selected]),
        np.concatenate(places),
        names,
        texts,
    )


def write_segment(folder: Path, data: SegmentData) -> None:
    """Write all files of a segment, which takes effect once the manifest names it."""
    folder.mkdir(parents=True)
    fits_uint16 = data.words.max(initial=0) < 2**16
    arrays: dict[str, NDArray[Any]] = {
        "scale": data.scale,
        "words": data.words.astype(np.uint16 if fits_uint16 else np.int32),
        "weights": data.weights,
        "places": data.places,
        "bounds": np.cumsum([0, *map(len, data.texts)]).astype(np.int64),
    }
    for name, array in arrays.items():
        with atomic_write(folder / f"{name}.npy") as stream:
            np.save(stream, array)
    with atomic_write(folder / "vectors.npy") as stream:
        header = {"descr": "|i1", "fortran_order": False, "shape": (len(data), len(data.scale))}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.writelines(block.tobytes() for block in data.vectors)
    with atomic_write(folder / "texts.bin") as stream:
        stream.writelines(data.texts)
    with atomic_write(folder / "names.json") as stream:
        stream.write(json.dumps(list(data.names), ensure_ascii=False).encode())


def quantize_weights(weights: Floats) -> NDArray[np.uint8]:
    """Weights of words in one byte each; larger ones than the limit become the limit."""
    steps: NDArray[np.uint8] = np.rint(np.clip(weights / _MAX_WORD_WEIGHT, 0, 1) * 255).astype(
        np.uint8
    )
    return steps


def dequantize_weights(weights: NDArray[np.uint8]) -> Floats:
    """About the weights that `quantize_weights` was given."""
    values: Floats = weights.astype(np.float32) * np.float32(_MAX_WORD_WEIGHT / 255)
    return values


def _quantized_blocks(dense: Floats, scale: Floats) -> Iterator[NDArray[np.int8]]:
    """In blocks, because the float vectors of a long text can be a gigabyte."""
    for at in range(0, len(dense), _BLOCK_ROWS):
        yield np.rint(dense[at : at + _BLOCK_ROWS] / scale).astype(np.int8)


def _encode_text(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"The text of {name!r} cannot be stored as UTF-8 ({error}).") from error


def _map_bytes(path: Path) -> NDArray[np.uint8]:
    if not path.stat().st_size:  # an empty file cannot be mapped
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, mode="r")
