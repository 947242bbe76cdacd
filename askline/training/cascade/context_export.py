"""
The folder of a cascade with a context: trained float tensors in, int8 out. It needs no torch.

The encoder and its classifiers are written unchanged, so that independent candidates rank as
before. The adapter is stored as that of a reader. For int8, the merged weights of every adapted
layer get scales of their rows and of their inputs, and their biases make up for the mean rounding
error on sample windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engine.adapter import float_tensors, merged_weight
from ...engine.quantization import (
    best_row_scales,
    quantize_rows,
    refit_input_quantization,
    round_rows,
)
from ...engine.sequences import Windows
from ...engine.tokenizer import WordPiece
from ...errors import InputError
from ...models.cascade_config import (
    Adapter,
    CascadeConfig,
    ContextConfig,
    check_cascade_tensors,
    reader_tensors,
)
from ...models.encoder_config import DENSE_INPUTS
from ...models.folder import ModelFolder, write_folder
from ...types import Passage
from ..post_training_quantization import layer_activations, quantize_adapter

__all__ = ["write_context"]

FloatArray = NDArray[np.float32]
_OWN = ("adapter.", "reader.", "context.")


def write_context(
    folder: ModelFolder,
    own: Mapping[str, FloatArray],
    context: ContextConfig,
    adapter: Adapter,
    to: str | PathLike[str],
    *,
    windows: Sequence[tuple[str, Passage]],
    card: str,
) -> Path:
    """
    Write the cascade of `folder` with this adapter, reader and context.

    `own` has the float tensors `adapter.*`, `reader.*` and `context.*`, without scales. `windows`
    are questions with passages, to which an int8 folder's scales are fitted; about a hundred are
    enough. Of the config, only `reader`, `adapter` and `context` change.
    """
    before = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    config = replace(before, reader=True, adapter=adapter, context=context)
    stored = {
        name: one for name, one in folder.stored_tensors().items() if not name.startswith(_OWN)
    }
    kept: dict[str, NDArray[Any]] = dict(own)
    if config.precision == "int8":
        kept = _quantize(config, stored, own, WordPiece.load(_tokenizer(folder)), windows)
    check_cascade_tensors(config, stored | kept, path=folder.path)
    return write_folder(
        to,
        config={**folder.config, **config.to_config()},
        tensors=stored | kept,
        card=card,
        files={"tokenizer.json": _tokenizer(folder).read_bytes()},
    )


def _tokenizer(folder: ModelFolder) -> Path:
    return folder.path / "tokenizer.json"


def _quantize(
    config: CascadeConfig,
    stored: Mapping[str, NDArray[Any]],
    own: Mapping[str, FloatArray],
    tokenizer: WordPiece,
    windows: Sequence[tuple[str, Passage]],
) -> dict[str, NDArray[Any]]:
    """The own tensors as they are stored, with the scales of the merged layers."""
    if not windows:
        raise InputError("At least one (question, passage) is needed to fit the scales, got none.")
    assert config.context is not None
    assert config.adapter is not None
    made = quantize_adapter(own)
    for depth in config.context.depths:
        name = f"context.{depth}.dense"
        made[f"{name}.weight"], made[f"{name}.scale"] = quantize_rows(own[f"{name}.weight"])
    sample = Windows.for_requests(
        tokenizer, config.context, [(question, [passage]) for question, passage in windows]
    )
    batches = [sample.batch(np.array([window])) for window in range(len(sample))]
    whole = dict(stored) | made
    exact = reader_tensors(float_tensors(stored) | dict(own))
    for layer, points in enumerate(layer_activations(config, exact, batches)):
        if layer < config.adapter.first:
            continue
        for point, inputs in points.items():
            made |= _quantize_inputs(whole, own, f"layers.{layer}", point, inputs)
    return made


def _quantize_inputs(
    whole: Mapping[str, NDArray[Any]],
    own: Mapping[str, FloatArray],
    stem: str,
    point: str,
    inputs: FloatArray,
) -> dict[str, NDArray[Any]]:
    """The scales of one activation and of the merged dense layers that read it."""
    dense = [f"{stem}.{name}" for name, reads in DENSE_INPUTS.items() if reads == point]
    weights = {name: merged_weight(whole, name) for name in dense}
    smooth = whole.get(f"{stem}.{point}.smooth")
    factors = np.float32(1.0) if smooth is None else smooth.astype(np.float32)
    steps = refit_input_quantization(inputs, np.concatenate(list(weights.values())), smooth)
    made: dict[str, NDArray[Any]] = {
        f"adapter.{stem}.{point}.scale": np.array(steps.scale, np.float32),
        f"adapter.{stem}.{point}.zero": np.array(steps.zero, np.uint8),
    }
    rounded_inputs = (steps.fake_quantize(inputs) * factors).mean(axis=0)
    for name, weight in weights.items():
        smoothed = np.asarray(weight / factors, np.float32)
        scale = best_row_scales(smoothed).astype(np.float32)
        rounded = round_rows(smoothed, scale) * scale[:, None]
        error = inputs.mean(axis=0) @ weight.T - rounded_inputs @ rounded.T
        made[f"adapter.{name}.scale"] = scale
        made[f"adapter.{name}.bias"] = (own[f"adapter.{name}.bias"] + error).astype(np.float16)
    return made
