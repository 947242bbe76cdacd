"""The recurrent layer over a question's candidates, in numpy, from torch's weights."""

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
    (pairs, inputs) of one question in their order → (pairs, outputs).

    `tensors` are named as torch names them, with "list." before: "list.weight_ih_l0" and so on.
    """
    if kind == "none":
        return pairs
    read = _lstm if kind.endswith("lstm") else _rnn
    forward = read(tensors, pairs, "")
    if not kind.startswith("bi"):
        return forward
    return np.concatenate([forward, read(tensors, pairs[::-1], "_reverse")[::-1]], axis=1)


def list_layer_shapes(kind: ListLayerKind, inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors of `apply_list_layer`; `hidden` covers both directions."""
    if kind == "none":
        return {}
    both = kind.startswith("bi")
    own = hidden // 2 if both else hidden
    rows = 4 * own if kind.endswith("lstm") else own
    shapes: dict[str, tuple[int, ...]] = {}
    for direction in ("", "_reverse") if both else ("",):
        shapes[f"list.weight_ih_l0{direction}"] = (rows, inputs)
        shapes[f"list.weight_hh_l0{direction}"] = (rows, own)
        shapes[f"list.bias_ih_l0{direction}"] = (rows,)
        shapes[f"list.bias_hh_l0{direction}"] = (rows,)
    return shapes


def _rnn(tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str) -> FloatArray:
    taken, carry = _taken(tensors, pairs, direction)
    state = np.zeros(carry.shape[1], np.float32)
    out = np.empty((len(pairs), len(state)), np.float32)
    for row, one in enumerate(taken):
        state = out[row] = np.tanh(one + carry @ state)
    return out


def _lstm(tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str) -> FloatArray:
    taken, carry = _taken(tensors, pairs, direction)
    state = np.zeros(carry.shape[1], np.float32)
    cell = np.zeros_like(state)
    out = np.empty((len(pairs), len(state)), np.float32)
    for row, one in enumerate(taken):
        enter, forget, content, leave = np.split(one + carry @ state, 4)
        cell = _sigmoid(forget) * cell + _sigmoid(enter) * np.tanh(content)
        state = out[row] = _sigmoid(leave) * np.tanh(cell)
    return out


def _taken(
    tensors: Mapping[str, FloatArray], pairs: FloatArray, direction: str
) -> tuple[FloatArray, FloatArray]:
    """What each pair brings in, for all pairs at once, and the weights that carry the state on."""
    bias = tensors[f"list.bias_ih_l0{direction}"] + tensors[f"list.bias_hh_l0{direction}"]
    weight = tensors[f"list.weight_ih_l0{direction}"]
    return pairs @ weight.T + bias, tensors[f"list.weight_hh_l0{direction}"]


def _sigmoid(values: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)), np.float32)  # overflows nowhere
