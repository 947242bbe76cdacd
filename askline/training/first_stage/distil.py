"""
Make the shipped word vectors again: a sentence encoder's vectors of single words, made small.

    python -m askline.training.first_stage.distil --encoder DIR --words glove.6B.100d.txt --out FILE

The encoder is `sentence-transformers/all-MiniLM-L6-v2`; of the second file the words alone are
used, which go from common to rare.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ...models.vector_formats import read_vectors
from ...models.word_vectors import SHIPPED, WordVectors
from ...text.words import words
from .encoder import SentenceEncoder

__all__ = ["distilled"]

_AT_ONCE = 512
_LANGUAGE = 400_000
"""Words of the list that rarity is counted by; a word beyond them is as rare as can be."""


def distilled(encoder: SentenceEncoder, known: Iterable[str], dimensions: int) -> WordVectors:
    """
    Vectors for words that go from common to rare.

    The mean is taken off, principal components are kept and brought half-way to one size, which
    sharpens the cosine; then every row has length 1 in 8 bits a number.
    """
    kept = tuple(known)
    parts = [
        encoder.encode(kept[first : first + _AT_ONCE]).numpy()
        for first in range(0, len(kept), _AT_ONCE)
    ]
    rows = _principal(np.concatenate(parts).astype(np.float64), dimensions)
    small = np.rint(rows / np.abs(rows).max(axis=1, keepdims=True) * 127).astype(np.int8)
    scales = 1 / np.linalg.norm(small.astype(np.float64), axis=1)
    rarity = np.log(np.arange(len(kept)) + 2) / np.log(_LANGUAGE)
    return WordVectors(
        kept, small, scales.astype(np.float32), rarity.astype(np.float32), "hashed", SHIPPED
    )


def _principal(rows: NDArray[np.float64], dimensions: int) -> NDArray[np.float64]:
    rows = rows - rows.mean(axis=0)
    spread, axes = np.linalg.eigh(rows.T @ rows / len(rows))
    chosen = np.argsort(-spread)[:dimensions]
    return np.asarray(rows @ axes[:, chosen] * spread[chosen] ** -0.25)


@click.command()
@click.option("--encoder", type=click.Path(exists=True, file_okay=False), required=True)
@click.option("--words", "listed", type=click.Path(exists=True, dir_okay=False), required=True)
@click.option("--out", type=click.Path(dir_okay=False), required=True)
@click.option("--count", default=80_000, show_default=True)
@click.option("--dimensions", default=128, show_default=True)
def main(encoder: str, listed: str, out: str, count: int, dimensions: int) -> None:
    """Distil word vectors from a sentence encoder."""
    known = [word for word in read_vectors(listed).words if words(word) == [word]]
    vectors = distilled(SentenceEncoder.load(encoder), known[:count], dimensions)
    vectors.save(Path(out))
    click.echo(str(vectors), err=True)


if __name__ == "__main__":
    main()
