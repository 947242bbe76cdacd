"""The recurrent layer over a question's candidates, in numpy, with torch's weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..models.light_config import ListLayerKind
from .numpy_ops import FloatArray

__all__ = [
    "apply_list_layer",
    "list_layer_shapes",
]


def apply_list_layer(
    kind: ListLayerKind, tensors: Mapping[str, FloatArray], pairs: FloatArray
) -> FloatArray:
    """
    Run the layer over one question's pairs, in their order: (pairs, inputs) → (pairs, outputs).

    `tensors` have torch's names with the prefix "list.", for example "list.weight_ih_l0".
    """
    if kind == "none":
        return pairs
    layer = _lstm if kind.endswith("lstm") else _rnn
    forward = layer(tensors, pairs, "")
    if not kind.startswith("bi"):
        return forward
    return np.concatenate([forward, layer(tensors, pairs[::-1], "_reverse")[::-1]], axis=1)


def list_layer_shapes(kind: ListLayerKind, inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the layer's tensors; `hidden` is the size of both directions together."""
    if kind == "none":
        return {}
    bidirectional = kind.startswith("bi")
    size = hidden // 2 if bidirectional else hidden
    rows = 4 * size if kind.endswith("lstm") else size
    shapes: dict[str, tuple[int, ...]] = {}
    for direction in ("", "_reverse") if bidirectional else ("",):
        shapes[f"list.weight_ih_l0{direction}"] = (rows, inputs)
        shapes[f"list.weight_hh_l0{direction}"] = (rows, size)
        shapes[f"list.bias_ih_l0{direction}"] = (rows,)
        shapes[f"list.bias_hh_l0{direction}"] = (rows,)
    return shapes


def _rnn(tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str) -> FloatArray:
    inputs, recurrent = _projected(tensors, pairs, direction)
    state = np.zeros(recurrent.shape[1], np.float32)
    states = np.empty((len(pairs), len(state)), np.float32)
    for row, projected in enumerate(inputs):
        state = states[row] = np.tanh(projected + recurrent @ state)
    return states


def _lstm(tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str) -> FloatArray:
    inputs, recurrent = _projected(tensors, pairs, direction)
    state = np.zeros(recurrent.shape[1], np.float32)
    cell = np.zeros_like(state)
    states = np.empty((len(pairs), len(state)), np.float32)
    for row, projected in enumerate(inputs):
        input_gate, forget_gate, content, output_gate = np.split(projected + recurrent @ state, 4)
        cell = _sigmoid(forget_gate) * cell + _sigmoid(input_gate) * np.tanh(content)
        state = states[row] = _sigmoid(output_gate) * np.tanh(cell)
    return states


def _projected(
    tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str
) -> tuple[FloatArray, FloatArray]:
    """The input projection of all pairs at once, and the recurrent weights."""
    bias = tensors[f"list.bias_ih_l0{direction}"] + tensors[f"list.bias_hh_l0{direction}"]
    weight = tensors[f"list.weight_ih_l0{direction}"]
    return pairs @ weight.T + bias, tensors[f"list.weight_hh_l0{direction}"]


def _sigmoid(values: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)), np.float32)  # cannot overflow
