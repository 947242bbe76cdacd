"""
How the parts of an encoder are drawn as ONNX operators.

The fused operators are ONNX Runtime's own: research/decisions/engine.md.

The encoder's layers as ONNX graphs, made from a folder's tensors when it is opened.

All pairs of a batch have the same number of tokens, so no graph has a mask, and no work is spent on
padding. Dense layers in int8 add up whole numbers, which come out the same in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..models.cascade_config import CascadeLayout, reading_tensors
from ..models.encoder_config import DENSE, EncoderShape
from .onnx_writer import Graph

__all__ = [
    "STATES",
    "Layout",
    "Sheet",
    "Tensors",
    "body",
    "embedder",
    "marker_observer",
    "markers",
    "observer",
    "pooler",
    "reader",
    "scorer",
    "watched",
]

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


def embedder(layout: Layout, tensors: Tensors, last: int) -> bytes:
    """The embeddings and the first `last` layers: tokens in, states out."""
    sheet = Sheet(layout, tensors)
    return _risen(sheet, sheet.embedded(), range(last))


def body(layout: Layout, tensors: Tensors, first: int, last: int) -> bytes:
    """Layers `first` to `last` - 1: states in, states out."""
    sheet = Sheet(layout, tensors)
    return _risen(sheet, sheet.states(), range(first, last))


def _risen(sheet: Sheet, states: str, layers: range) -> bytes:
    for layer in layers:
        states = sheet.layer(layer, states)
    sheet.graph.output(states, "risen", "float32", (*STATES, sheet.layout.encoder.width))
    return sheet.graph.to_bytes()


def pooler(layout: CascadeLayout, tensors: Tensors, depth: int) -> bytes:
    """
    What a classifier reads that looks at the first token: states in, one for each pair out.

    It takes the states *before* its layer, and computes that layer for the first token alone: what
    is dropped here never pays for the rest of it.
    """
    sheet = Sheet(layout, tensors)
    first = sheet.layer(depth - 1, sheet.states(), first_only=True)
    pooled = sheet.graph.node("ReduceMean", first, axes=[1], keepdims=0)
    sheet.graph.output(pooled, "pooled", "float32", ("pairs", layout.encoder.width))
    return sheet.graph.to_bytes()


def scorer(layout: CascadeLayout, tensors: Tensors, depth: int) -> bytes:
    """The classifier at that depth: what it reads in, a logit for each pair out."""
    sheet = Sheet(layout, tensors)
    pooled = sheet.graph.input("pooled", "float32", ("pairs", layout.encoder.width))
    for name in layout.hidden(depth):
        pooled = sheet.graph.node("Tanh", sheet.dense(name, pooled))
    logits = sheet.dense(f"classifiers.{depth}.out", pooled)
    sheet.graph.output(logits, "logits", "float32", ("pairs", 1))
    return sheet.graph.to_bytes()


def reader(layout: CascadeLayout, tensors: Tensors) -> bytes:
    """
    The reading head: start and end logits out.

    In come the states that the last scorer takes in, or, for a reader with an adapter, tokens.
    """
    sheet, layers = Sheet(layout, reading_tensors(tensors)), layout.encoder.layers
    states = sheet.embedded() if layout.adapter else sheet.states()
    done = 0 if layout.adapter else layers - (layout.reads(layers) == "first")
    for layer in range(done, layers):
        states = sheet.layer(layer, states)
    sheet.graph.output(sheet.dense("reader", states), "ends", "float32", (*STATES, 2))
    return sheet.graph.to_bytes()


def watched(layout: Layout, tensors: Tensors) -> bytes:
    """All layers: states in; out come states, and each layer's keys and values."""
    sheet, shape = Sheet(layout, tensors), (*STATES, layout.encoder.width)
    states = sheet.states()
    for layer in range(layout.encoder.layers):
        states = sheet.layer(layer, states)
        for made, name in zip(sheet.seen, ("key", "value"), strict=True):
            sheet.graph.output(made, f"{name}.{layer}", "float32", shape)
    sheet.graph.output(states, "risen", "float32", shape)
    return sheet.graph.to_bytes()


def markers(layout: Layout, tensors: Tensors) -> bytes:
    """All layers of tokens beside a text, whose keys and values come in: states out."""
    sheet = Sheet(layout, tensors)
    states, sight = sheet.states(), _sight(sheet)
    for layer in range(layout.encoder.layers):
        states = sheet.beside(layer, states, _seen(sheet, layer), sight)
    return _risen(sheet, states, range(0))


def observer(layout: Layout, tensors: Tensors, layer: int) -> bytes:
    """One layer: states in; out come states, and what its dense layers read besides them."""
    sheet = Sheet(layout, tensors)
    return _observed(sheet, sheet.layer(layer, sheet.states()))


def marker_observer(layout: Layout, tensors: Tensors, layer: int) -> bytes:
    """The same of tokens beside a text."""
    sheet = Sheet(layout, tensors)
    states, sight = sheet.states(), _sight(sheet)
    return _observed(sheet, sheet.beside(layer, states, _seen(sheet, layer), sight))


def _observed(sheet: Sheet, risen: str) -> bytes:
    sheet.graph.output(risen, "risen", "float32", (*STATES, sheet.layout.encoder.width))
    for name, made in sheet.read.items():
        sheet.graph.output(made, name, "float32", (*STATES, f"{name} channels"))
    return sheet.graph.to_bytes()


def _sight(sheet: Sheet) -> str:
    return sheet.graph.input("sight", "float32", (1, 1, "tokens", "all"))


def _seen(sheet: Sheet, layer: int) -> tuple[str, str]:
    """The text's keys and values at a layer, brought by the caller."""
    shape = ("pairs", "others", sheet.layout.encoder.width)
    key, value = (
        sheet.graph.input(f"{name}.{layer}", "float32", shape) for name in ("key", "value")
    )
    return key, value
