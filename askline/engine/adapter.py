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
        for dense, point in DENSE_INPUTS.items():
            stem = f"layers.{layer}.{dense}"
            weight = merged_weight(tensors, stem)
            if tensors[f"{stem}.weight"].dtype == np.int8:
                smooth = tensors.get(f"layers.{layer}.{point}.smooth")
                if smooth is not None:
                    weight = np.asarray(weight / smooth, np.float32)
                made[f"{stem}.weight"] = round_rows(weight, adapted[f"{stem}.scale"])
            else:
                made[f"{stem}.weight"] = weight
    return made


def merged_weight(tensors: Tensors, stem: str) -> FloatArray:
    """The weight of an adapted dense layer, such as `layers.3.query`, in float."""
    up, down = (
        _dequantized(f"adapter.{stem}.{side}.weight", tensors) for side in ("up", "down")
    )  # (rank, outputs), (rank, inputs)
    product = matmul(np.ascontiguousarray(up.T), down)
    return np.asarray(_dequantized(f"{stem}.weight", tensors) + product, np.float32)


def _dequantized(name: str, tensors: Tensors) -> FloatArray:
    """A tensor in float; the factors of SmoothQuant are taken out of a weight."""
    value = tensors[name].astype(np.float32)
    if tensors[name].dtype != np.int8:
        return value
    stem = name.removesuffix(".weight")
    value *= tensors[f"{stem}.scale"].astype(np.float32)[:, None]
    layer, _, dense = stem.rpartition(".")
    smooth = tensors.get(f"{layer}.{DENSE_INPUTS.get(dense)}.smooth")
    return value if smooth is None else np.asarray(value * smooth, np.float32)
