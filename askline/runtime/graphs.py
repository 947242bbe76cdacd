"""
The encoder's layers as ONNX graphs, made from a folder's tensors when it is opened.

All pairs of a batch have the same number of tokens, so no graph has a mask, and no work is spent on
padding. Dense layers in int8 add up whole numbers, which come out the same in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..models.cascade_layout import CascadeLayout
from .sheet import STATES, Sheet

__all__ = ["body", "embedder", "observer", "reader", "scorer"]


def embedder(layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]], last: int) -> bytes:
    """The embeddings and the first `last` layers: tokens in, states out."""
    sheet = Sheet(layout, tensors)
    return _risen(sheet, sheet.embedded(), range(last))


def body(
    layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]], first: int, last: int
) -> bytes:
    """Layers `first` to `last` - 1: states in, states out."""
    sheet = Sheet(layout, tensors)
    return _risen(sheet, sheet.states(), range(first, last))


def _risen(sheet: Sheet, states: str, layers: range) -> bytes:
    for layer in layers:
        states = sheet.layer(layer, states)
    sheet.graph.output(states, "risen", "float32", (*STATES, sheet.layout.encoder.width))
    return sheet.graph.to_bytes()


def scorer(layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]], depth: int) -> bytes:
    """
    The classifier at that depth: states in, a logit for each pair out.

    One that reads the first token takes the states *before* its layer, and computes that layer for
    the first token alone: what is dropped here never pays for the rest of it.
    """
    sheet = Sheet(layout, tensors)
    states = sheet.states()
    if layout.head == "first":
        states = sheet.layer(depth - 1, states, first_only=True)
    pooled = sheet.graph.node("ReduceMean", states, axes=[1], keepdims=0)
    for name in layout.hidden(depth):
        pooled = sheet.graph.node("Tanh", sheet.dense(name, pooled))
    logits = sheet.dense(f"classifiers.{depth}.out", pooled)
    sheet.graph.output(logits, "logits", "float32", ("pairs", 1))
    return sheet.graph.to_bytes()


def reader(layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """The reading head: the states that the last scorer takes in, start and end logits out."""
    sheet = Sheet(layout, tensors)
    states = sheet.states()
    if layout.head == "first":
        states = sheet.layer(layout.encoder.layers - 1, states)
    sheet.graph.output(sheet.dense("reader", states), "ends", "float32", (*STATES, 2))
    return sheet.graph.to_bytes()


def observer(layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]], layer: int) -> bytes:
    """One layer: states in; out come states, and what its dense layers read besides them."""
    sheet = Sheet(layout, tensors)
    risen = sheet.layer(layer, sheet.states())
    sheet.graph.output(risen, "risen", "float32", (*STATES, layout.encoder.width))
    for name, made in sheet.read.items():
        sheet.graph.output(made, name, "float32", (*STATES, f"{name} channels"))
    return sheet.graph.to_bytes()
