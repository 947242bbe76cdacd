"""
The encoder's layers as ONNX graphs, made from a folder's tensors when it is opened.

All pairs of a batch have the same number of tokens, so no graph has a mask, and no work is spent on
padding. Dense layers in int8 add up whole numbers, which come out the same in any order.
"""

from __future__ import annotations

from ..models.cascade_layout import CascadeLayout, reading_tensors
from .sheet import STATES, Layout, Sheet, Tensors

__all__ = [
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
