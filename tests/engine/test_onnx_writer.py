from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askline.engine.onnx_writer import OnnxGraph
from askline.engine.sessions import create_session

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def _run(graph: OnnxGraph, **inputs: Any) -> list[Any]:
    found: list[Any] = create_session(graph.to_bytes()).run(None, inputs)
    return found


def test_a_graph_computes() -> None:
    graph = OnnxGraph()
    rows = graph.input("rows", "float32", ("count", 3))
    turned = graph.node("MatMul", rows, graph.constant(ROWS.T))
    graph.output(turned, "out", "float32", ("count", 2))
    assert np.array_equal(_run(graph, rows=ROWS)[0], ROWS @ ROWS.T)


@pytest.mark.parametrize("kind", ["float32", "uint8", "int8", "int32", "int64", "bool", "float16"])
def test_constants_of_every_dtype(kind: str) -> None:
    graph, value = OnnxGraph(), np.array([[0, 1], [2, 3]]).astype(kind)
    graph.input("unused", "float32", (1,))
    graph.output(graph.constant(value), "out", kind, (2, 2))
    (found,) = _run(graph, unused=np.zeros(1, np.float32))
    assert found.dtype == kind
    assert np.array_equal(found, value)


def test_attributes_of_every_type() -> None:
    graph = OnnxGraph()
    rows = graph.input("rows", "float32", (2, 3))
    filled = graph.node(
        "ConstantOfShape",
        graph.constant(np.array([2, 3], np.int64)),
        value=np.array([-1.5], np.float32),
    )
    leaky = graph.node("LeakyRelu", graph.node("Add", rows, filled), alpha=0.5)
    turned = graph.node("Transpose", leaky, perm=[1, 0])
    summed = graph.node("ReduceSum", turned, graph.constant(np.array([-1], np.int64)), keepdims=0)
    graph.output(graph.node("Cast", summed, to=1), "out", "float32", (3,))
    shifted = ROWS - 1.5
    expected = np.where(shifted < 0, shifted / 2, shifted).sum(axis=0)
    assert _run(graph, rows=ROWS)[0] == pytest.approx(expected)


def test_split_makes_parts() -> None:
    graph = OnnxGraph()
    rows = graph.input("rows", "float32", (2, 3))
    for number, part in enumerate(graph.split(rows, (1, 2), axis=1)):
        graph.output(part, f"part {number}", "float32", (2, "some"))
    first, second = _run(graph, rows=ROWS)
    assert np.array_equal(first, ROWS[:, :1])
    assert np.array_equal(second, ROWS[:, 1:])


def test_equal_small_constants_are_stored_once() -> None:
    graph = OnnxGraph()
    assert graph.constant(np.float32(2.0)) == graph.constant(np.float32(2.0))
    assert graph.constant(np.float32(2.0)) != graph.constant(np.array([2.0], np.float32))
