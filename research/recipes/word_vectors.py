"""
A BERT sentence encoder read from a folder: mean over tokens, length 1. For distilling only.

Make the shipped word vectors again: a sentence encoder's vectors of single words, made small.

    python -m research.recipes.word_vectors --encoder DIR --words glove.6B.100d.txt --out FILE

The encoder is `sentence-transformers/all-MiniLM-L6-v2`; of the second file the words alone are
used, which go from common to rare.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from askline.models.word_vector_formats import read_vectors
from askline.models.word_vectors import SHIPPED, WordVectors
from askline.text.words import split_words

__all__ = [
    "SentenceEncoder",
    "distilled",
]


@dataclass(frozen=True, eq=False)
class SentenceEncoder:
    """`config.json`, `vocab.txt` (uncased word pieces) and `model.safetensors` of a BERT."""

    tensors: dict[str, Tensor]
    pieces: dict[str, int]
    layers: int
    heads: int

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> SentenceEncoder:
        """The files as Sentence Transformers keeps them."""
        path = Path(folder)
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        vocabulary = (path / "vocab.txt").read_text(encoding="utf-8").split("\n")
        tensors = {
            name.removeprefix("bert."): value
            for name, value in load_file(path / "model.safetensors").items()
        }
        pieces = {piece: number for number, piece in enumerate(vocabulary)}
        return cls(tensors, pieces, config["num_hidden_layers"], config["num_attention_heads"])

    @torch.no_grad()
    def encode(self, words: Sequence[str]) -> Tensor:
        """(words, hidden): each word by itself, at length 1."""
        rows = [self._split(word) for word in words]
        longest = max(map(len, rows))
        tokens = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        inside = torch.tensor([[place < len(row) for place in range(longest)] for row in rows])
        states = self._states(tokens, inside) * inside[..., None]
        return F.normalize(states.sum(1) / inside.sum(1, keepdim=True), dim=1)

    def _split(self, word: str) -> list[int]:
        """The longest known piece first, as BERT was trained."""
        plain = unicodedata.normalize("NFD", word)
        plain = "".join(sign for sign in plain if unicodedata.category(sign) != "Mn")
        found: list[int] = []
        start = 0
        while start < len(plain):
            ends = range(len(plain), start, -1)
            mark = "##" if start else ""
            end = next((end for end in ends if mark + plain[start:end] in self.pieces), None)
            if end is None:
                found = [self.pieces["[UNK]"]]
                break
            found.append(self.pieces[mark + plain[start:end]])
            start = end
        return [self.pieces["[CLS]"], *found, self.pieces["[SEP]"]]

    def _states(self, tokens: Tensor, inside: Tensor) -> Tensor:
        take = self.tensors
        states = (
            take["embeddings.word_embeddings.weight"][tokens]
            + take["embeddings.position_embeddings.weight"][: tokens.shape[1]]
            + take["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._normal("embeddings", states)
        mask = torch.where(inside, 0.0, -torch.inf)[:, None, None]
        for number in range(self.layers):
            states = self._layer(f"encoder.layer.{number}", states, mask)
        return states

    def _layer(self, name: str, states: Tensor, mask: Tensor) -> Tensor:
        attention = f"{name}.attention.self"
        query, key, value = (
            self._heads(self._linear(f"{attention}.{part}", states))
            for part in ("query", "key", "value")
        )
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        seen = self._linear(f"{name}.attention.output.dense", seen.transpose(1, 2).flatten(2))
        states = self._normal(f"{name}.attention.output", states + seen)
        inner = F.gelu(self._linear(f"{name}.intermediate.dense", states))
        return self._normal(f"{name}.output", states + self._linear(f"{name}.output.dense", inner))

    def _heads(self, states: Tensor) -> Tensor:
        """(texts, tokens, hidden) → (texts, heads, tokens, hidden / heads)."""
        texts, tokens, hidden = states.shape
        return states.view(texts, tokens, self.heads, hidden // self.heads).transpose(1, 2)

    def _linear(self, name: str, states: Tensor) -> Tensor:
        return F.linear(states, self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    def _normal(self, name: str, states: Tensor) -> Tensor:
        weight = self.tensors[f"{name}.LayerNorm.weight"]
        bias = self.tensors[f"{name}.LayerNorm.bias"]
        return F.layer_norm(states, weight.shape, weight, bias, 1e-12)


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
    known = [word for word in read_vectors(listed).words if split_words(word) == [word]]
    vectors = distilled(SentenceEncoder.load(encoder), known[:count], dimensions)
    vectors.save(Path(out))
    click.echo(str(vectors), err=True)


if __name__ == "__main__":
    main()
