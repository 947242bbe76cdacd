"""
A cascade or a cross-encoder as one ONNX file, of standard operators alone.

Inputs are named as Hugging Face's tokenisers name them (`input_ids`, `attention_mask`,
`token_type_ids`), padding allowed. Outputs are `logits` at full depth, `logits_D` at each earlier
depth D, and `start_logits` and `end_logits` where there is a reader.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.graphs import STATES, Sheet
from ..models.cascade_config import CascadeLayout

__all__ = ["Standard", "onnx_file"]


def onnx_file(layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """The whole network, all classifiers with it."""
    sheet = Standard(layout, tensors)
    graph = sheet.graph
    numbers, mask, kinds = (
        graph.input(name, "int64", STATES)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    sheet.hide(mask)
    states = sheet.embedding(numbers, kinds)
    for layer in range(layout.depths[-1]):
        states = sheet.layer(layer, states)
        if layer + 1 in layout.depths:
            name = "logits" if layer + 1 == layout.depths[-1] else f"logits_{layer + 1}"
            graph.output(sheet.classified(layer + 1, states), name, "float32", ("pairs", 1))
    if layout.reader:
        ends = graph.split(sheet.dense("reader", states), (1, 1), axis=2)
        for made, name in zip(ends, ("start_logits", "end_logits"), strict=True):
            axis = graph.constant(np.array([2], np.int64))
            graph.output(graph.node("Squeeze", made, axis), name, "float32", STATES)
    return graph.to_bytes()


@dataclass(slots=True, eq=False)
class Standard(Sheet):
    """No operator of one runtime's own; padding is left out of attention and means."""

    layout: CascadeLayout
    _shown: str = ""  # (pairs, tokens, 1): 1 for a token, 0 for padding
    _hidden: str = ""  # (pairs, 1, 1, tokens): 0 for a token, far below it for padding

    def hide(self, mask: str) -> None:
        """Take `mask` (pairs, tokens) for all attention to come."""
        node, const = self.graph.node, self.graph.constant
        floats = node("Cast", mask, to=1)
        self._shown = node("Unsqueeze", floats, const(np.array([2], np.int64)))
        wide = node("Unsqueeze", floats, const(np.array([1, 2], np.int64)))
        less = node("Sub", wide, const(np.float32(1.0)))
        self._hidden = node("Mul", less, const(np.float32(1e9)))

    def attention(self, query: str, key: str, value: str, sight: str = "") -> str:
        node, const = self.graph.node, self.graph.constant
        heads, width = self.layout.encoder.heads, self.layout.encoder.width
        apart = const(np.array([0, 0, heads, width // heads], np.int64))

        def turned(states: str, order: list[int]) -> str:
            return node("Transpose", node("Reshape", states, apart), perm=order)

        scores = node("MatMul", turned(query, [0, 2, 1, 3]), turned(key, [0, 2, 3, 1]))
        scores = node("Mul", scores, const(np.float32(1.0 / math.sqrt(width // heads))))
        shares = node("Softmax", node("Add", scores, sight or self._hidden), axis=-1)
        context = node("MatMul", shares, turned(value, [0, 2, 1, 3]))
        together = const(np.array([0, 0, width], np.int64))
        return node("Reshape", node("Transpose", context, perm=[0, 2, 1, 3]), together)

    def gelu(self, inputs: str) -> str:
        node, const = self.graph.node, self.graph.constant
        bent = node("Erf", node("Mul", inputs, const(np.float32(math.sqrt(0.5)))))
        half = node("Mul", inputs, const(np.float32(0.5)))
        return node("Mul", half, node("Add", bent, const(np.float32(1.0))))

    def dense8(self, name: str, inputs: str, point: str) -> str:
        """Rounded and taken back at once, which runtimes know as "QDQ" and compute in int8."""
        node, const = self.graph.node, self.graph.constant
        scale, zero = self.floats(f"{point}.scale"), const(self.zero(point))
        rounded = node("DequantizeLinear", self.eight_bits(point, inputs), scale, zero)
        whole = const(self.tensors[f"{name}.weight"].T)
        weight = node("DequantizeLinear", whole, self.floats(f"{name}.scale"), axis=1)
        return node("Add", node("MatMul", rounded, weight), self.floats(f"{name}.bias"))

    def classified(self, depth: int, states: str) -> str:
        """(pairs, 1) from the states behind that depth's layer."""
        node, axis = self.graph.node, self.graph.constant(np.array([1], np.int64))
        if self.layout.reads(depth) == "first":
            pooled = node("Squeeze", self.first(states), axis)
        else:
            total = node("ReduceSum", node("Mul", states, self._shown), axis, keepdims=0)
            pooled = node("Div", total, node("ReduceSum", self._shown, axis, keepdims=0))
        for name in self.layout.hidden(depth):
            pooled = node("Tanh", self.dense(name, pooled))
        return self.dense(f"classifiers.{depth}.out", pooled)
