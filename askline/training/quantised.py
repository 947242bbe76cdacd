"""A float cascade → the same in int8, by what its layers read on real text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.quantization import InputSteps, fit_inputs, quantise_rows, round_rows
from ..engine.tokenizer import WordPiece
from ..models.cascade_config import DENSE, CascadeLayout
from .observing import Pair, observe

__all__ = ["quantised", "quantised_layer"]

FloatArray = NDArray[np.float32]
Tensors = dict[str, NDArray[Any]]


def quantised(
    layout: CascadeLayout,
    tensors: Mapping[str, FloatArray],
    tokeniser: WordPiece,
    pairs: Sequence[Pair],
) -> tuple[CascadeLayout, Tensors]:
    """
    The encoder's dense layers in int8, all else in float16.

    `pairs` are (question, candidate) texts: about a hundred are enough. Word embeddings and the
    classifiers' wide layers are kept in int8 too, by their rows, but computed in float: they cost
    little time, and nothing behind a classifier evens an error out.
    """
    made: Tensors = {name: value.astype(np.float16) for name, value in tensors.items()}
    hidden = [name for depth in layout.depths for name in layout.hidden(depth)]
    for name in ("words", *hidden):
        weight = tensors[f"{name}.weight"]
        made[f"{name}.weight"], made[f"{name}.scale"] = quantise_rows(weight)
    for layer, read in enumerate(observe(layout, tensors, tokeniser, pairs)):
        made |= quantised_layer(f"layers.{layer}", tensors, read)
    return replace(layout, precision="int8"), made


def quantised_layer(
    stem: str, tensors: Mapping[str, FloatArray], read: Mapping[str, FloatArray]
) -> Tensors:
    """The dense layers of one layer in int8, by what they read: (tokens, channels) by its name."""
    made: Tensors = {}
    for point, inputs in read.items():
        names = [f"{stem}.{dense}" for dense, reads in DENSE.items() if reads == point]
        steps = fit_inputs(inputs, [tensors[f"{name}.weight"] for name in names])
        for name in names:
            made |= _dense(name, tensors, inputs, steps)
        made[f"{stem}.{point}.scale"] = np.array(steps.scale, np.float32)
        made[f"{stem}.{point}.zero"] = np.array(steps.zero, np.uint8)
        if steps.smooth is not None:
            made[f"{stem}.{point}.smooth"] = steps.smooth
    return _moved_into_value(stem, made)


def _dense(
    name: str, tensors: Mapping[str, FloatArray], inputs: FloatArray, steps: InputSteps
) -> Tensors:
    """Weights in int8, and a bias that takes away what they get wrong on average."""
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    smooth = np.float32(1.0) if steps.smooth is None else steps.smooth
    rounded = steps.rounded(inputs) * smooth
    whole, scale = round_rows(weight / smooth, rounded)
    mean = rounded.mean(axis=0) @ (whole * scale[:, None]).T
    right = bias + inputs.mean(axis=0) @ weight.T - mean
    return {f"{name}.weight": whole, f"{name}.scale": scale, f"{name}.bias": right}


def _moved_into_value(stem: str, made: Tensors) -> Tensors:
    """The context is a mean of values: what its channels are multiplied by, theirs can be too."""
    smooth = made.pop(f"{stem}.context.smooth", None)
    if smooth is not None:
        made[f"{stem}.value.scale"] = made[f"{stem}.value.scale"] * smooth
        made[f"{stem}.value.bias"] = made[f"{stem}.value.bias"] * smooth
    return made
