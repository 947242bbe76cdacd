"""The ways that `research.benchmarks.engine_tries` draws a cascade's layers in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askline.engine.encoder import open_session
from askline.engine.graphs import STATES, Sheet
from askline.engine.onnx_writer import Graph
from askline.models.cascade_config import DENSE, CascadeLayout

__all__ = ["WAYS", "Way", "float_tensors", "large_product"]

Tensors = Mapping[str, NDArray[Any]]
FUSED = "com.microsoft"


@dataclass(frozen=True)
class Way:
    """How the layers are drawn, and how ONNX Runtime is told to run them."""

    sheet: Callable[..., Sheet] = Sheet
    level: str = "ORT_ENABLE_BASIC"
    arena: bool = False
    precise: bool = False
    """From float tensors."""

    def graph(self, layout: CascadeLayout, tensors: Tensors, layers: range) -> bytes:
        sheet = self.sheet(layout, tensors)
        states = sheet.states()
        for layer in layers:
            states = sheet.layer(layer, states)
        sheet.graph.output(states, "risen", "float32", (*STATES, layout.encoder.width))
        return sheet.graph.to_bytes()


class _TanhGelu(Sheet):
    def gelu(self, inputs: str) -> str:
        return self.graph.node("FastGelu", inputs, domain=FUSED)


class _SigmoidGelu(Sheet):
    def gelu(self, inputs: str) -> str:
        return self.graph.node("QuickGelu", inputs, domain=FUSED, alpha=1.702)


class _DynamicRanges(Sheet):
    """Each batch's own range: scores then depend on their neighbours."""

    def dense8(self, name: str, inputs: str, point: str) -> str:  # noqa: ARG002
        weight = self.graph.constant(self.tensors[f"{name}.weight"].T)
        scale, bias = self.floats(f"{name}.scale"), self.floats(f"{name}.bias")
        return self.graph.node(
            "DynamicQuantizeMatMul", inputs, weight, scale, "", bias, domain=FUSED
        )


class _SignedInputs(Sheet):
    """Inputs from -128 to 127 in place of 0 to 255."""

    def zero(self, point: str) -> NDArray[Any]:
        return (self.tensors[f"{point}.zero"].astype(np.int16) - 128).astype(np.int8)


class _WithoutSmoothing(Sheet):
    """Channels are not evened out before they become bytes."""

    def eight_bits(self, point: str, inputs: str) -> str:
        if (point, inputs) not in self._bytes:
            scale, zero = self.floats(f"{point}.scale"), self.graph.constant(self.zero(point))
            self._bytes[point, inputs] = self.graph.node("QuantizeLinear", inputs, scale, zero)
        return self._bytes[point, inputs]


class _JoinedProducts(Sheet):
    """Query, key and value in one product, then cut apart."""

    def layer(self, layer: int, states: str, *, first_only: bool = False) -> str:  # noqa: ARG002
        stem, width = f"layers.{layer}", self.layout.encoder.width
        names = [f"{stem}.{dense}" for dense in ("query", "key", "value")]
        joined = {
            part: np.concatenate([self.tensors[f"{name}.{part}"] for name in names])
            for part in ("weight", "scale", "bias")
        }
        point = f"{stem}.{DENSE['query']}"
        scale, zero = self.floats(f"{point}.scale"), self.graph.constant(self.zero(point))
        made = self.graph.node(
            "MatMulIntegerToFloat",
            self.eight_bits(point, states),
            self.graph.constant(joined["weight"].T),
            scale,
            self.graph.constant(joined["scale"].astype(np.float32)),
            zero,
            "",
            self.graph.constant(joined["bias"].astype(np.float32)),
            domain=FUSED,
        )
        query, key, value = self.graph.split(made, [width] * 3, axis=2)
        return self.rest(stem, states, self.attention(query, key, value))


class _PlainAttention(Sheet):
    """Attention as products and a softmax of their own."""

    def attention(self, query: str, key: str, value: str, sight: str = "") -> str:  # noqa: ARG002
        own, node = self.layout.encoder, self.graph.node
        size = own.width // own.heads
        apart = self.graph.constant(np.array([0, 0, own.heads, size], np.int64))
        heads = [node("Reshape", one, apart) for one in (query, key, value)]
        left, right, values = (
            node("Transpose", one, perm=perm)
            for one, perm in zip(heads, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scale = self.graph.constant(np.array(size**-0.5, np.float32))
        shares = node("Softmax", node("Mul", node("MatMul", left, right), scale), axis=-1)
        mixed = node("Transpose", node("MatMul", shares, values), perm=[0, 2, 1, 3])
        return node("Reshape", mixed, self.graph.constant(np.array([0, 0, own.width], np.int64)))


class _Blocks(Sheet):
    """Weights in 8 bits by blocks of 128 inputs, inputs rounded by blocks as they come."""

    block = 128

    def dense8(self, name: str, inputs: str, point: str) -> str:  # noqa: ARG002
        weight = self.tensors[f"{name}.weight"]
        outputs, width = weight.shape
        blocks = width // self.block
        stored = (weight.astype(np.int16) + 128).astype(np.uint8).reshape(outputs, blocks, -1)
        scale = np.repeat(self.tensors[f"{name}.scale"].astype(np.float32), blocks)
        made = self.graph.node(
            "MatMulNBits",
            inputs,
            self.graph.constant(stored),
            self.graph.constant(scale.reshape(outputs, blocks)),
            domain=FUSED,
            K=width,
            N=outputs,
            bits=8,
            block_size=self.block,
            accuracy_level=4,
        )
        return self.graph.node("Add", made, self.floats(f"{name}.bias"))


WAYS = {
    "as it is": Way(),
    "float32": Way(precise=True),
    "ranges of each batch": Way(_DynamicRanges),
    "inputs signed": Way(_SignedInputs),
    "8 bits by blocks": Way(_Blocks),
    "channels not evened out": Way(_WithoutSmoothing),
    "query, key, value joined": Way(_JoinedProducts),
    "attention in parts": Way(_PlainAttention),
    "gelu by tanh": Way(_TanhGelu),
    "gelu by a sigmoid": Way(_SigmoidGelu),
    "sums and norms fused": Way(level="ORT_ENABLE_ALL"),
    "no optimisation": Way(level="ORT_DISABLE_ALL"),
    "memory arena": Way(arena=True),
}


def float_tensors(tensors: Tensors) -> dict[str, NDArray[Any]]:
    """The encoder's dense layers as what their whole numbers stand for."""
    made = dict(tensors)
    for name in [name for name in tensors if name.startswith("layers.")]:
        if tensors[name].dtype == np.int8 and name.endswith(".weight"):
            scale = tensors[f"{name.removesuffix('.weight')}.scale"].astype(np.float32)
            made[name] = tensors[name] * scale[:, None]
    return made


def large_product(kind: str, rows: int = 512, size: int = 1536) -> tuple[Callable[[], Any], int]:
    """One product of (rows, size) by (size, size), and how many multiplications it has."""
    graph, random = Graph(), np.random.default_rng(0)
    whole = random.integers(-64, 65, (size, size))
    if kind == "int8":
        left: NDArray[Any] = random.integers(0, 256, (rows, size)).astype(np.uint8)
        operator, stored, made = "MatMulInteger", whole.astype(np.int8), "int32"
    else:
        left = random.standard_normal((rows, size)).astype(np.float32)
        operator, stored, made = "MatMul", whole.astype(np.float32), "float32"
    given = graph.input("left", left.dtype.name, ("rows", size))
    product = graph.node(operator, given, graph.constant(stored))
    graph.output(product, "out", made, ("rows", size))
    session = open_session(graph.to_bytes())
    return lambda: session.run(None, {"left": left}), rows * size * size
