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
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorpusError, InputError
from ..text.atomic_write import atomic_write
from .inverted_lists import InvertedLists, build_lists
from .phrase_model import EncodedPhrases

__all__ = [
    "Segment",
    "SegmentData",
    "joined",
    "write_segment",
]

Floats = NDArray[np.float32]
Ints = NDArray[np.integer[Any]]
_BLOCK = 2_048  # rows made real at a time: few enough to stay in a cache, four times as fast
_FULL = 8.0  # a word's greatest weight; log1p of a match hardly ever comes near


@dataclass(frozen=True, slots=True, eq=False)
class SegmentData:
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
    def of(cls, documents: Sequence[tuple[str, str, EncodedPhrases]]) -> SegmentData:
        """Of documents that have phrases: name, text, and these with their real numbers."""
        coded = [phrases for _, _, phrases in documents]
        highest = np.max([phrases.dense.max(0) for phrases in coded], axis=0)
        lowest = np.min([phrases.dense.min(0) for phrases in coded], axis=0)
        scale = np.maximum(np.maximum(highest, -lowest), 1e-12) / np.float32(127)
        weights = np.concatenate([phrases.weights for phrases in coded])
        places = [
            (place, phrase.start, phrase.end)
            for place, phrases in enumerate(coded)
            for phrase in phrases.phrases
        ]
        return cls(
            (block for phrases in coded for block in _rounded(phrases.dense, scale)),
            scale.astype(np.float32),
            np.concatenate([phrases.words for phrases in coded]),
            np.rint(np.clip(weights / _FULL, 0, 1) * 255).astype(np.uint8),
            np.array(places, np.int32),
            [name for name, _, _ in documents],
            [_bytes(name, text) for name, text, _ in documents],
        )

    def __len__(self) -> int:
        return len(self.places)


class Segment:
    """An opened segment. All of it is mapped at once: a writer may take the folder away."""

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
            self._texts = _mapped(folder / "texts.bin")
        except (OSError, ValueError, EOFError) as error:
            raise CorpusError(
                f"{folder} is damaged ({error}). Delete the phrase index and make it anew."
            ) from error
        self._lists = InvertedLists(folder)
        self._kept: tuple[int, str] | None = None  # the last text: many hits are of one document
        self._numbers = {name: place for place, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def has_lists(self) -> bool:
        """Whether it is searched through inverted lists."""
        return bool(self._lists)

    def build_lists(self) -> None:
        """Have it searched through lists from now on."""
        build_lists(self.folder, self.vectors, self.scale)

    def number(self, name: str) -> int | None:
        """The place of a document in the segment, None where it is not there."""
        return self._numbers.get(name)

    def text(self, document: int) -> str:
        """The text of a document by its place in the segment."""
        kept = self._kept
        if kept is None or kept[0] != document:
            kept = self._kept = document, self.blob(document).decode()
        return kept[1]

    def blob(self, document: int) -> bytes:
        """The same, as it is kept."""
        start, end = map(int, self._bounds[document : document + 2])
        return self._texts[start:end].tobytes()

    def count(self, gone: Collection[int]) -> int:
        """How many phrases the documents at these places have."""
        return int(np.isin(self.places[:, 0], list(gone)).sum()) if gone else 0

    def nearest(
        self, question: Floats, k: int, *, probes: int, gone: Collection[int] = ()
    ) -> tuple[NDArray[np.int64], Floats]:
        """
        Rows with the highest dot products, best first, and these; none of documents at `gone`.

        Exact where there are no lists. With lists, those of `probes` of them by product-quantised
        scores, put in order by the vectors themselves.
        """
        scaled = question * self.scale
        left = ~np.isin(self.places[:, 0], list(gone)) if gone else None
        rows = self._lists.search(question, 2 * k, probes=probes, left=left)
        if rows is not None:
            scores = self._dot(rows, scaled)
        else:
            blocks = range(0, len(self), _BLOCK)
            scores = np.concatenate([self._dot(slice(at, at + _BLOCK), scaled) for at in blocks])
            rows = np.arange(len(self)) if left is None else np.flatnonzero(left)
            scores = scores if left is None else scores[rows]
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


def joined(parts: Sequence[tuple[Segment, set[int]]]) -> SegmentData | None:
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
    return SegmentData(
        (block for segment, some in own for block in segment.rescaled(some, scale)),
        scale,
        np.concatenate([segment.words[some] for segment, some in own]),
        np.concatenate([segment.weights[some] for segment, some in own]),
        np.concatenate(places),
        names,
        texts,
    )


def write_segment(folder: Path, rows: SegmentData) -> None:
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
        with atomic_write(folder / f"{name}.npy") as stream:
            np.save(stream, array)
    with atomic_write(folder / "vectors.npy") as stream:
        header = {"descr": "|i1", "fortran_order": False, "shape": (len(rows), len(rows.scale))}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.writelines(block.tobytes() for block in rows.vectors)
    with atomic_write(folder / "texts.bin") as stream:
        stream.writelines(rows.texts)
    with atomic_write(folder / "names.json") as stream:
        stream.write(json.dumps(list(rows.names), ensure_ascii=False).encode())


def _rounded(dense: Floats, scale: Floats) -> Iterator[NDArray[np.int8]]:
    """Block by block: of a long text the vectors alone fill a gigabyte."""
    for at in range(0, len(dense), _BLOCK):
        yield np.rint(dense[at : at + _BLOCK] / scale).astype(np.int8)


def _bytes(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"The text of {name!r} is no Unicode text ({error}).") from error


def _mapped(path: Path) -> NDArray[np.uint8]:
    if not path.stat().st_size:  # which cannot be mapped
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, mode="r")
