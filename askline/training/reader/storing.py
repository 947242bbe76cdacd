"""What a reader learnt → beside the cascade it was fitted to, in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engine.quantization import quantise_rows, refit_inputs
from ...engine.tokenizer import WordPiece
from ...errors import InputError
from ...models.cascade_config import DENSE, Adapter, CascadeLayout, check_tensors, reading_tensors
from ...models.folder import ModelFolder, write_folder
from ..observing import Pair, observe
from .network import float_tensors

__all__ = ["carried_over", "cut", "mean_of", "write_reader"]

FloatArray = NDArray[np.float32]


def mean_of(readers: Sequence[Mapping[str, FloatArray]], rank: int) -> dict[str, FloatArray]:
    """One reader whose differences are the mean of theirs, as near to it as the rank allows."""
    if not readers:
        raise InputError("The mean of no reader at all was asked for.")
    made: dict[str, FloatArray] = {}
    for name, first in readers[0].items():
        if name.endswith(".up.weight"):
            down = name.replace(".up.", ".down.")
            products = [one[name].T @ one[down] for one in readers]
            made[name], made[down] = cut(np.mean(products, axis=0), rank)
        elif not name.endswith(".down.weight"):
            made[name] = np.mean([one[name] for one in readers], axis=0, dtype=first.dtype)
    return made


def carried_over(
    theirs: Mapping[str, FloatArray], own: Mapping[str, FloatArray], adapter: Adapter
) -> dict[str, FloatArray]:
    """
    The reader of another cascade as one on this encoder, as near to it as the rank allows.

    `theirs` has all tensors of that cascade, `own` those of this one. Where both come from one
    start, what the two encoders differ by is small, and most of it fits into the rank too.
    """
    made = {name: one for name, one in theirs.items() if name.startswith("reader.")}
    read = reading_tensors(theirs)
    for name, weight in own.items():
        layer = name.partition(".")[2].partition(".")[0]
        if not name.startswith("layers.") or int(layer) < adapter.first:
            continue
        if weight.ndim == 1:
            made[f"adapter.{name}"] = read[name]
            continue
        stem = name.removesuffix(".weight")
        whole = read[name]
        if f"{stem}.up.weight" in read:
            whole = whole + read[f"{stem}.up.weight"].T @ read[f"{stem}.down.weight"]
        thin = cut(whole - weight, adapter.rank)
        for side, one in zip(("up", "down"), thin, strict=True):
            made[f"adapter.{stem}.{side}.weight"] = one
    return made


def cut(difference: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """(outputs, inputs) → the nearest product of `up`, turned, and `down`, each (rank, size)."""
    left, sizes, right = np.linalg.svd(difference, full_matrices=False)
    roots = np.sqrt(sizes[:rank])[:, None]
    return (left.T[:rank] * roots).astype(np.float32), (right[:rank] * roots).astype(np.float32)


def write_reader(
    folder: ModelFolder,
    own: Mapping[str, FloatArray],
    adapter: Adapter,
    to: str | PathLike[str],
    *,
    pairs: Sequence[Pair],
    card: str,
) -> Path:
    """
    The cascade of `folder` with this reader, under the same config but for the adapter.

    Every other tensor is written as it was, byte for byte. In an int8 folder the thin matrices are
    kept in int8, and the steps of what the reader's layers read are fitted to `pairs`.
    """
    before = CascadeLayout.from_config(folder.config, path=folder.path / "config.json")
    layout = replace(before, reader=True, adapter=adapter)
    stored = {
        name: one
        for name, one in folder.stored().items()
        if not name.startswith(("adapter.", "reader."))
    }
    kept: dict[str, NDArray[Any]] = dict(own)
    if layout.precision == "int8":
        tokeniser = WordPiece.load(folder.path / "tokenizer.json")
        kept = _small(own) | _steps(layout, stored, own, tokeniser, pairs)
    check_tensors(layout, stored | kept, path=folder.path)
    return write_folder(
        to,
        config={**folder.config, **layout.to_config()},
        tensors=stored | kept,
        card=card,
        files={"tokenizer.json": (folder.path / "tokenizer.json").read_bytes()},
    )


def _small(own: Mapping[str, FloatArray]) -> dict[str, NDArray[Any]]:
    """Thin matrices in int8 by their rows, all else in float16."""
    made: dict[str, NDArray[Any]] = {name: one.astype(np.float16) for name, one in own.items()}
    for name in own:
        if name.endswith((".up.weight", ".down.weight")):
            made[name], made[f"{name.removesuffix('weight')}scale"] = quantise_rows(own[name])
    return made


def _steps(
    layout: CascadeLayout,
    stored: Mapping[str, NDArray[Any]],
    own: Mapping[str, FloatArray],
    tokeniser: WordPiece,
    pairs: Sequence[Pair],
) -> dict[str, NDArray[Any]]:
    """The steps of each input of the adapted layers; channels are moved as the encoder has it."""
    if not pairs:
        raise InputError("At least one (question, text) pair is needed to fit the reader's steps.")
    whole, first = float_tensors(stored), layout.adapter.first if layout.adapter else 0
    made: dict[str, NDArray[Any]] = {}
    read = observe(layout, reading_tensors(whole | dict(own)), tokeniser, pairs)
    for layer, points in enumerate(read):
        for point, inputs in points.items() if layer >= first else ():
            stem = f"layers.{layer}"
            names = [f"{stem}.{dense}.weight" for dense, reads in DENSE.items() if reads == point]
            weight = np.concatenate([whole[name] for name in names])
            steps = refit_inputs(inputs, weight, stored.get(f"{stem}.{point}.smooth"))
            made[f"adapter.{stem}.{point}.scale"] = np.array(steps.scale, np.float32)
            made[f"adapter.{stem}.{point}.zero"] = np.array(steps.zero, np.uint8)
    return made
