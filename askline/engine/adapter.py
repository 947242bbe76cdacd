"""
The layers of a cascade with its adapter merged into them.

A dense layer of the adapted encoder has the weights `W + up.T @ down`. For a reader alone, the
low-rank product is computed beside the dense layer. Passages are read by all adapted layers, so the
product is added to the weights once, when the layers are first needed. Int8 weights are then
rounded again, with the scales that the folder holds for the merged rows; a merged layer costs what
an ordinary int8 layer costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.cascade_config import CascadeConfig, reader_tensors
from ..models.encoder_config import DENSE_INPUTS
from .numpy_ops import FloatArray, matmul
from .quantization import round_rows

__all__ = ["float_tensors", "merged_layers", "merged_weight"]

_MERGED_ROWS = 64  # rows of a weight that are merged at once
_PRODUCT_COLUMNS = 384

Tensors = Mapping[str, NDArray[Any]]


def float_tensors(tensors: Tensors) -> dict[str, FloatArray]:
    """The tensors of a folder, dequantized to float, without scales and zero points."""
    steps = {name for name in tensors if name.endswith((".scale", ".zero", ".smooth"))}
    return {name: _dequantized(name, tensors) for name in tensors.keys() - steps}


def merged_layers(
    config: CascadeConfig, tensors: Tensors, first: int, last: int
) -> dict[str, NDArray[Any]]:
    """
    The tensors of the layers from `first` to `last` - 1 as the adapted encoder has them.

    Tensors outside the layers are included; other layers and low-rank matrices are not.
    """
    adapted = reader_tensors(tensors)
    made: dict[str, NDArray[Any]] = {
        name: one
        for name, one in adapted.items()
        if not name.startswith(("adapter.", "layers."))
        or (name.startswith("layers.") and first <= int(name.split(".")[1]) < last)
    }
    for name in [name for name in made if name.endswith((".up.weight", ".down.weight"))]:
        del made[name]
        made.pop(f"{name.removesuffix('weight')}scale", None)
    if config.adapter is None:
        return made
    for layer in range(max(first, config.adapter.first), last):
        for dense in DENSE_INPUTS:
            stem = f"layers.{layer}.{dense}"
            if tensors[f"{stem}.weight"].dtype == np.int8:
                made[f"{stem}.weight"] = _merged_rows(tensors, stem, adapted[f"{stem}.scale"])
            else:
                made[f"{stem}.weight"] = merged_weight(tensors, stem)
    return made


def _merged_rows(tensors: Tensors, stem: str, scale: NDArray[Any]) -> NDArray[np.int8]:
    """
    The int8 weight of an adapted dense layer, with the scales of the merged rows.

    Computed in blocks of rows that stay in the cache of a core: an adapter changes every weight of
    the encoder, and a question waits for that.
    """
    up, down = _low_rank(tensors, stem)
    weight, smooth = tensors[f"{stem}.weight"], _smooth(tensors, stem)
    old, new = (one.astype(np.float32)[:, None] for one in (tensors[f"{stem}.scale"], scale))
    merged = np.empty(weight.shape, np.int8)
    rows = np.empty((2, _MERGED_ROWS, weight.shape[1]), np.float32)
    for first in range(0, len(weight), _MERGED_ROWS):
        block = slice(first, first + _MERGED_ROWS)
        own, product = rows[:, : len(weight[block])]
        np.multiply(weight[block], old[block], out=own)
        if smooth is not None:
            own *= smooth
        own += _product(up[block], down, product)
        if smooth is not None:
            own /= smooth
        merged[block] = round_rows(own, new[block, 0])
    return merged


def merged_weight(tensors: Tensors, stem: str) -> FloatArray:
    """The weight of an adapted dense layer, such as `layers.3.query`, in float."""
    up, down = _low_rank(tensors, stem)
    product = _product(up, down, np.empty((len(up), down.shape[1]), np.float32))
    return np.asarray(_dequantized(f"{stem}.weight", tensors) + product, np.float32)


def _low_rank(tensors: Tensors, stem: str) -> tuple[FloatArray, FloatArray]:
    """The matrices (outputs, rank) and (rank, inputs) of an adapted dense layer."""
    up, down = (
        _dequantized(f"adapter.{stem}.{side}.weight", tensors) for side in ("up", "down")
    )  # (rank, outputs), (rank, inputs)
    return np.ascontiguousarray(up.T), down


def _product(up: FloatArray, down: FloatArray, out: FloatArray) -> FloatArray:
    """`up @ down`, in blocks of columns so small that BLAS computes them on this thread."""
    for first in range(0, down.shape[1], _PRODUCT_COLUMNS):
        columns = slice(first, first + _PRODUCT_COLUMNS)
        out[:, columns] = matmul(up, np.ascontiguousarray(down[:, columns]))
    return out


def _smooth(tensors: Tensors, stem: str) -> NDArray[Any] | None:
    """The factors of SmoothQuant of a dense layer's inputs, if it has any."""
    layer, _, dense = stem.rpartition(".")
    return tensors.get(f"{layer}.{DENSE_INPUTS.get(dense)}.smooth")


def _dequantized(name: str, tensors: Tensors) -> FloatArray:
    """A tensor in float; the factors of SmoothQuant are taken out of a weight."""
    value = tensors[name].astype(np.float32)
    if tensors[name].dtype != np.int8:
        return value
    stem = name.removesuffix(".weight")
    value *= tensors[f"{stem}.scale"].astype(np.float32)[:, None]
    smooth = _smooth(tensors, stem)
    return value if smooth is None else np.asarray(value * smooth, np.float32)
