"""
Word vectors: one frozen row a word, small on disk, with a rule for words that have none.

A saved set is one safetensors file. The set that comes with askline is `WordVectors.load()`; its
card says what it is made of.

A vector file in a form that opens at once: words in a text file, rows memory-mapped.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256, shake_128
from importlib.resources import files
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ..errors import InputError, ModelError, UnknownNameError
from ..text.atomic_write import atomic_write

__all__ = [
    "SHIPPED",
    "UnknownRule",
    "WordVectors",
    "read_cached",
]

SHIPPED = "default"
"""The name of the set that comes with askline."""

UnknownRule = Literal["zero", "hashed"]
"""
zero: unknown words are alike, and like nothing. hashed: each gets a unit vector of its own, made
from its letters, so that it equals itself and is close to nothing else.
"""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Rows are float32, or int8 with a scale for each row. Words are in their normal form."""

    words: tuple[str, ...] = field(repr=False)
    rows: NDArray[np.float32] | NDArray[np.int8] = field(repr=False)  # (words, dimensions)
    scales: NDArray[np.float32] = field(repr=False)  # (words,) what a row is multiplied by
    rarity: NDArray[np.float32] = field(repr=False)  # (words,) 0 for the most common, 1 for rare
    unknown: UnknownRule = "hashed"
    name: str = ""
    place: dict[str, int] = field(init=False, repr=False)
    """The row of each word."""

    def __post_init__(self) -> None:
        if self.unknown not in get_args(UnknownRule):
            raise UnknownNameError(
                "rule for unknown words", str(self.unknown), get_args(UnknownRule)
            )
        count = len(self.words)
        if self.rows.ndim != 2 or {len(self.rows), len(self.scales), len(self.rarity)} != {count}:
            raise InputError(
                f"{count} words need as many rows, scales and rarities, "
                f"got {self.rows.shape}, {self.scales.shape} and {self.rarity.shape}."
            )
        place = {word: row for row, word in enumerate(self.words)}
        if len(place) != count:
            raise InputError(f"Words must differ, got {count} with {len(place)} different ones.")
        object.__setattr__(self, "place", place)

    @classmethod
    def from_rows(
        cls,
        words: Sequence[str],
        rows: NDArray[np.float32],
        *,
        rarity: NDArray[np.float32] | None = None,
        unknown: UnknownRule = "hashed",
        name: str = "",
    ) -> WordVectors:
        """Rows of floats as they are. Without rarities the words go from common to rare."""
        if rarity is None:
            rarity = rarity_by_rank(len(words))
        return cls(tuple(words), rows, np.ones(len(words), np.float32), rarity, unknown, name)

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self.rows.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.place

    def __str__(self) -> str:
        bits = self.rows.dtype.itemsize * 8
        label = self.name or "unnamed"
        return (
            f"{label}: {len(self)} words × {self.dimensions}, {bits} bits, unknown {self.unknown}"
        )

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """(words, dimensions): a row each, by the rule for unknown words where there is none."""
        return self.look_up(words)[0]

    def idf(self, words: Sequence[str]) -> NDArray[np.float32]:
        """How rare each word is in the language, 0 to 1; an unknown word is as rare as can be."""
        place = self._places(words)
        return np.where(place < 0, np.float32(1), self.rarity[place])

    def look_up(self, words: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What `of` and `idf` give, for the price of one."""
        place = self._places(words)
        vectors = self.rows.take(place, axis=0).astype(np.float32)
        vectors *= self.scales.take(place)[:, None]
        rarity = self.rarity[place]
        unknown = np.flatnonzero(place < 0)
        if len(unknown):
            rarity[unknown] = 1.0
            vectors[unknown] = 0.0
            if self.unknown == "hashed":
                strange = [words[row] for row in unknown.tolist()]
                vectors[unknown] = _hashed(strange, self.dimensions)
        return vectors, rarity

    def _places(self, words: Sequence[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self.place.get, words, repeat(-1)), np.int64, len(words))

    def restricted(self, words: Iterable[str]) -> WordVectors:
        """The part for these words, in the order that the set has them."""
        rows = sorted({self.place[word] for word in words if word in self.place})
        kept = tuple(self.words[row] for row in rows)
        parts = (self.rows[rows], self.scales[rows], self.rarity[rows])
        return WordVectors(kept, *parts, self.unknown)

    def quantized(self) -> WordVectors:
        """The same in 8 bits a number: a quarter of the size, a cosine moves by about 0.001."""
        rows = self.rows * self.scales[:, None]
        scales = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-12) / 127
        small = np.rint(rows / scales[:, None]).astype(np.int8)
        scales = scales.astype(np.float32)
        return WordVectors(self.words, small, scales, self.rarity, self.unknown, self.name)

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file that `load` reads back to the same vectors."""
        text = "\n".join(self.words).encode("utf-8", "surrogatepass")
        tensors = {
            "words": np.frombuffer(text, np.uint8),
            "rows": np.ascontiguousarray(self.rows),
            "scales": self.scales,
            "rarity": self.rarity,
        }
        with atomic_write(path) as stream:
            stream.write(save(tensors, {"unknown": self.unknown, "name": self.name}))

    @classmethod
    def load(cls, path: str | PathLike[str] | None = None) -> WordVectors:
        """A file that `save` wrote; without a path, the set that comes with askline."""
        file = Path(path) if path is not None else _shipped_file()
        try:
            with safe_open(file, framework="numpy") as opened:
                about = opened.metadata() or {}
                take = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            text = bytes(take.pop("words")).decode("utf-8", "surrogatepass")
            words = tuple(text.split("\n")) if text else ()
            parts = (take["rows"], take["scales"], take["rarity"])
            rule: Any = about.get("unknown", "hashed")  # checked by the constructor
            return cls(words, *parts, rule, about.get("name", ""))
        except FileNotFoundError:
            raise ModelError(
                f"No word vectors at {file}. Name a file that was saved there."
            ) from None
        except (SafetensorError, KeyError, OSError, ValueError) as error:
            raise ModelError(
                f"{file} must be a word-vector file as WordVectors.save writes it: {error}"
            ) from error


def rarity_by_rank(count: int) -> NDArray[np.float32]:
    """0 to 1 by the logarithm of the rank, which is near the idf for words sorted by frequency."""
    ranks = np.log1p(np.arange(count)) / np.log1p(max(count, 2) - 1)
    return np.asarray(ranks, np.float32)


def _shipped_file() -> Path:
    return Path(str(files("askline.models") / "shipped" / "vectors.safetensors"))


def _hashed(words: Sequence[str], dimensions: int) -> NDArray[np.float32]:
    """A unit vector a word, the same on every machine and in every version."""
    drawn = b"".join(
        shake_128(word.encode("utf-8", "surrogatepass")).digest(dimensions) for word in words
    )
    rows = np.frombuffer(drawn, np.uint8).reshape(len(words), dimensions) - np.float32(127.5)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


_Read = Callable[[], tuple[list[str], NDArray[np.float32]]]


def read_cached(
    file: Path, folder: Path, read: _Read, *settings: str
) -> tuple[list[str], NDArray[np.float32]]:
    """
    What `read` gives for the file, kept in the folder for the next time.

    The entry is found by the file's full path, size and time of change: a file that was written
    anew is read anew. Entries are never removed here.
    """
    entry = folder / f"{file.name}-{_identity(file, settings)}"
    if not entry.is_dir():
        _keep(entry, *read())
    words = (entry / "words.txt").read_text(encoding="utf-8").split("\n")
    return words, np.load(entry / "rows.npy", mmap_mode="r", allow_pickle=False)


def _identity(file: Path, settings: tuple[str, ...]) -> str:
    state = file.stat() if file.exists() else None
    parts = [str(file.resolve()), *settings]
    if state is not None:
        parts += [str(state.st_size), str(state.st_mtime_ns)]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _keep(entry: Path, words: list[str], rows: NDArray[np.float32]) -> None:
    """Written beside, then moved: two processes may do this at once, and the first one wins."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=entry.parent, prefix=".draft-"))
    try:
        (draft / "words.txt").write_text("\n".join(words), encoding="utf-8")
        np.save(draft / "rows.npy", rows, allow_pickle=False)
        draft.rename(entry)
    except OSError:
        if not entry.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
