"""
Word vectors: a table of frozen vectors, with a rule for unknown words.

A table is saved as one safetensors file. `WordVectors.load()` loads the vectors that ship with
askline; their model card describes them. `word_vector_formats` reads word2vec and GloVe files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import shake_128
from importlib.resources import files
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save

from ..errors import InputError, ModelError, UnknownNameError
from ..text.atomic_write import atomic_write
from .mapped_tensors import map_tensors

__all__ = [
    "SHIPPED",
    "UnknownRule",
    "WordVectors",
    "rarity_by_rank",
]

SHIPPED = "default"
"""The name of the vectors that ship with askline."""

UnknownRule = Literal["zero", "hashed"]
"""
zero: all unknown words have the zero vector. hashed: each unknown word has a pseudo-random unit
vector, derived from its characters, which is similar only to itself.
"""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A table of normalized words. Rows are float32, or int8 with a scale per row."""

    words: tuple[str, ...] = field(repr=False)
    rows: NDArray[np.float32] | NDArray[np.int8] = field(repr=False)  # (words, dimensions)
    scales: NDArray[np.float32] = field(repr=False)  # (words,) factor of each row
    rarity: NDArray[np.float32] = field(repr=False)  # (words,) 0 common, 1 rare
    unknown: UnknownRule = "hashed"
    name: str = ""
    row_of: dict[str, int] = field(init=False, repr=False)
    """The row of each word."""

    def __post_init__(self) -> None:
        if self.unknown not in get_args(UnknownRule):
            raise UnknownNameError(
                "rule for unknown words", str(self.unknown), get_args(UnknownRule)
            )
        count = len(self.words)
        if self.rows.ndim != 2 or {len(self.rows), len(self.scales), len(self.rarity)} != {count}:
            raise InputError(
                f"Expected rows, scales and rarities for {count} words, "
                f"got {self.rows.shape}, {self.scales.shape} and {self.rarity.shape}."
            )
        row_of = dict(zip(self.words, range(count), strict=True))
        if len(row_of) != count:
            raise InputError(f"Words must be distinct, got {count} with {len(row_of)} distinct.")
        object.__setattr__(self, "row_of", row_of)

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
        """A table of float rows. Without `rarity`, the words must go from common to rare."""
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
        return word in self.row_of

    def __str__(self) -> str:
        bits = self.rows.dtype.itemsize * 8
        label = self.name or "unnamed"
        return (
            f"{label}: {len(self)} words × {self.dimensions}, {bits} bits, unknown {self.unknown}"
        )

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of these words, (words, dimensions)."""
        return self.look_up(words)[0]

    def idf(self, words: Sequence[str]) -> NDArray[np.float32]:
        """How rare each word is in the language, 0 to 1; 1 for unknown words."""
        rows = self._rows(words)
        return np.where(rows < 0, np.float32(1), self.rarity[rows])

    def look_up(self, words: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The results of `of` and of `idf`, with one lookup per word."""
        rows = self._rows(words)
        vectors = self.rows.take(rows, axis=0).astype(np.float32)
        vectors *= self.scales.take(rows)[:, None]
        rarity = self.rarity[rows]
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            rarity[unknown] = 1.0
            vectors[unknown] = 0.0
            if self.unknown == "hashed":
                unknown_words = [words[place] for place in unknown.tolist()]
                vectors[unknown] = _hashed_vectors(unknown_words, self.dimensions)
        return vectors, rarity

    def _rows(self, words: Sequence[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self.row_of.get, words, repeat(-1)), np.int64, len(words))

    def quantized(self) -> WordVectors:
        """The table in int8: a quarter of the size, cosines change by about 0.001."""
        rows = self.rows * self.scales[:, None]
        scales = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-12) / 127
        integers = np.rint(rows / scales[:, None]).astype(np.int8)
        scales = scales.astype(np.float32)
        return WordVectors(self.words, integers, scales, self.rarity, self.unknown, self.name)

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file, which `load` reads without loss."""
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
        """
        Read a file written by `save`; without a path, the vectors that ship with askline.

        The shipped vectors are read once per process.
        """
        if path is None:
            return _shipped_vectors()
        file = Path(path)
        try:
            tensors = map_tensors(file)
            metadata = tensors.metadata
            text = bytes(tensors.pop("words")).decode("utf-8", "surrogatepass")
            words = tuple(text.split("\n")) if text else ()
            parts = (tensors["rows"], tensors["scales"], tensors["rarity"])
            rule: Any = metadata.get("unknown", "hashed")  # checked by the constructor
            return cls(words, *parts, rule, metadata.get("name", ""))
        except FileNotFoundError:
            raise ModelError(
                f"No word vectors at {file}. Name a file that WordVectors.save wrote."
            ) from None
        except (SafetensorError, KeyError, OSError, ValueError) as error:
            raise ModelError(
                f"{file} must be a word-vector file as WordVectors.save writes it: {error}"
            ) from error


def rarity_by_rank(count: int) -> NDArray[np.float32]:
    """0 to 1 by the logarithm of the frequency rank, which is close to the idf."""
    ranks = np.log1p(np.arange(count)) / np.log1p(max(count, 2) - 1)
    return np.asarray(ranks, np.float32)


@cache
def _shipped_vectors() -> WordVectors:
    return WordVectors.load(str(files("askline.models") / "shipped" / "vectors.safetensors"))


def _hashed_vectors(words: Sequence[str], dimensions: int) -> NDArray[np.float32]:
    """One unit vector per word, the same on every machine and in every version."""
    digests = b"".join(
        shake_128(word.encode("utf-8", "surrogatepass")).digest(dimensions) for word in words
    )
    rows = np.frombuffer(digests, np.uint8).reshape(len(words), dimensions) - np.float32(127.5)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
