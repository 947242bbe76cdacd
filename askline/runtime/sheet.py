"""
How the parts of an encoder are drawn as ONNX operators.

The fused operators are ONNX Runtime's own: research/decisions/engine.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..models.encoder_layout import DENSE, EncoderShape
from ..models.onnx_graph import Graph

__all__ = ["STATES", "Layout", "Sheet", "Tensors"]

_FUSED = "com.microsoft"
STATES = ("pairs", "tokens")
"""Names of the sizes that differ from batch to batch."""
Tensors = Mapping[str, NDArray[Any]]


class Layout(Protocol):
    """What a folder describes: an encoder, and whatever stands on it."""

    @property
    def encoder(self) -> EncoderShape: ...


@dataclass(slots=True, eq=False)
class Sheet:
    """A graph, and how the encoder's parts are drawn on it."""

    layout: Layout
    tensors: Tensors
    graph: Graph = field(default_factory=Graph)
    read: dict[str, str] = field(default_factory=dict)
    """What the dense layers of the last layer drawn read, but for its input."""
    seen: tuple[str, str] = ("", "")
    """The keys and the values of the last layer drawn."""
    _bytes: dict[tuple[str, str], str] = field(default_factory=dict)

    def states(self) -> str:
        return self.graph.input("states", "float32", (*STATES, self.layout.encoder.width))

    def embedded(self) -> str:
        """From the tokens' numbers and kinds (0 the question's, 1 the candidate's)."""
        numbers = self.graph.input("numbers", "int64", STATES)
        kinds = self.graph.input("kinds", "int64", STATES)
        return self.embedding(numbers, kinds)

    def embedding(self, numbers: str, kinds: str) -> str:
        """(pairs, tokens) → (pairs, tokens, width)"""
        node, start = self.graph.node, self.graph.constant(np.zeros(1, np.int64))
        length = node("Shape", numbers, start=1, end=2)
        places = node("Slice", self.floats("positions.weight"), start, length)
        kind = node("Gather", self.floats("kinds.weight"), kinds)
        return self.norm("norm", node("Add", node("Add", self._words(numbers), places), kind))

    def _words(self, numbers: str) -> str:
        node, table = self.graph.node, self.tensors["words.weight"]
        if table.dtype != np.int8:
            return node("Gather", self.floats("words.weight"), numbers)
        steps = self.tensors["words.scale"].astype(np.float32)[:, None]
        whole = node("Cast", node("Gather", self.graph.constant(table), numbers), to=1)
        return node("Mul", whole, node("Gather", self.graph.constant(steps), numbers))

    def layer(self, layer: int, states: str, *, first_only: bool = False) -> str:
        """(pairs, tokens, width) → the same, or (pairs, 1, width) of the first token alone."""
        stem = f"layers.{layer}"
        key, value = self.dense(f"{stem}.key", states), self.dense(f"{stem}.value", states)
        if first_only:
            states = self.first(states)
        self.seen = key, value
        query = self.dense(f"{stem}.query", states)
        return self.rest(stem, states, self.attention(query, key, value))

    def beside(self, layer: int, states: str, seen: tuple[str, str], sight: str) -> str:
        """
        A layer of tokens that look at others, which do not look at them.

        `seen` are the others' keys and values, `sight` (1, 1, tokens, others + tokens) is 0 where a
        token may look and far below 0 where it may not.
        """
        stem, node = f"layers.{layer}", self.graph.node
        own = self.dense(f"{stem}.key", states), self.dense(f"{stem}.value", states)
        key, value = (node("Concat", *both, axis=1) for both in zip(seen, own, strict=True))
        query = self.dense(f"{stem}.query", states)
        return self.rest(stem, states, self.attention(query, key, value, sight))

    def rest(self, stem: str, states: str, context: str) -> str:
        """What follows attention in a layer."""
        node = self.graph.node
        attended = self.dense(f"{stem}.attended", context)
        states = self.norm(f"{stem}.attention_norm", node("Add", attended, states))
        inner = self.gelu(self.dense(f"{stem}.inner", states))
        self.read = {"context": context, "middle": states, "activated": inner}
        outer = self.dense(f"{stem}.outer", inner)
        return self.norm(f"{stem}.output_norm", node("Add", outer, states))

    def attention(self, query: str, key: str, value: str, sight: str = "") -> str:
        """Every token of `query` over all tokens of its pair, or those that `sight` lets it see."""
        heads = self.layout.encoder.heads
        more = ("", "", sight) if sight else ()
        return self.graph.node(
            "MultiHeadAttention", query, key, value, *more, domain=_FUSED, num_heads=heads
        )

    def gelu(self, inputs: str) -> str:
        return self.graph.node("Gelu", inputs, domain=_FUSED)

    def first(self, states: str) -> str:
        whole = [self.graph.constant(np.array([bound], np.int64)) for bound in (0, 1, 1)]
        return self.graph.node("Slice", states, *whole)

    def dense(self, name: str, inputs: str) -> str:
        """An affine map over the last axis, in int8 where the folder has it so."""
        stem, _, dense = name.rpartition(".")
        weight = self.tensors[f"{name}.weight"]
        if weight.dtype == np.int8 and dense in DENSE:
            made = self.dense8(name, inputs, f"{stem}.{DENSE[dense]}")
        else:
            turned = self.graph.constant(self.whole(name).T)
            product = self.graph.node("MatMul", inputs, turned)
            made = self.graph.node("Add", product, self.floats(f"{name}.bias"))
        return self.adapted(name, inputs, made)

    def adapted(self, name: str, inputs: str, made: str) -> str:
        """What a dense layer made, and what an adapter adds to it, where there is one."""
        if f"{name}.down.weight" not in self.tensors:
            return made
        node, constant = self.graph.node, self.graph.constant
        few = node("MatMul", inputs, constant(self.whole(f"{name}.down").T))
        return node("Add", made, node("MatMul", few, constant(self.whole(f"{name}.up"))))

    def whole(self, name: str) -> NDArray[np.float32]:
        """Weights that are not computed in int8, though they may be kept so."""
        weight = self.tensors[f"{name}.weight"].astype(np.float32)
        if self.tensors[f"{name}.weight"].dtype == np.int8:
            weight *= self.tensors[f"{name}.scale"].astype(np.float32)[:, None]
        return weight

    def dense8(self, name: str, inputs: str, point: str) -> str:
        """The same from bytes: whole numbers are multiplied and added, then scaled back."""
        scale, zero = self.floats(f"{point}.scale"), self.graph.constant(self.zero(point))
        return self.graph.node(
            "MatMulIntegerToFloat",
            self.eight_bits(point, inputs),
            self.graph.constant(self.tensors[f"{name}.weight"].T),
            scale,
            self.floats(f"{name}.scale"),
            zero,
            "",
            self.floats(f"{name}.bias"),
            domain=_FUSED,
        )

    def eight_bits(self, point: str, inputs: str) -> str:
        """An input as bytes, made once for all layers that read it."""
        if (point, inputs) not in self._bytes:
            smooth, scaled = f"{point}.smooth", inputs
            if smooth in self.tensors:
                scaled = self.graph.node("Mul", inputs, self.floats(smooth))
            scale, zero = self.floats(f"{point}.scale"), self.graph.constant(self.zero(point))
            self._bytes[point, inputs] = self.graph.node("QuantizeLinear", scaled, scale, zero)
        return self._bytes[point, inputs]

    def zero(self, point: str) -> NDArray[np.uint8]:
        return self.tensors[f"{point}.zero"].astype(np.uint8)

    def norm(self, name: str, states: str) -> str:
        return self.graph.node(
            "LayerNormalization",
            states,
            self.floats(f"{name}.weight"),
            self.floats(f"{name}.bias"),
            axis=-1,
            epsilon=self.layout.encoder.norm_epsilon,
        )

    def floats(self, name: str) -> str:
        return self.graph.constant(self.tensors[name].astype(np.float32))
