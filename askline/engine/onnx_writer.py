"""
ONNX files written without the onnx package: the few protobuf fields that a graph needs.

An `OnnxGraph` is written from inputs to outputs. Each call returns the name of its result, to be
passed to the next: `y = graph.node("Add", x, graph.constant(bias))`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "OnnxGraph",
]

_IR_VERSION = 8
_OPSETS = (("", 17), ("com.microsoft", 1))
_KINDS = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}
_VARINT, _BYTES, _FIXED32 = 0, 2, 5  # protobuf's wire types
_FLOAT, _INT, _STRING, _TENSOR, _INTS = 1, 2, 3, 4, 7  # ONNX's kinds of attribute


@dataclass(slots=True, eq=False)
class OnnxGraph:
    """A graph in the making."""

    _nodes: list[bytes] = field(default_factory=list)
    _constants: list[bytes] = field(default_factory=list)
    _inputs: list[bytes] = field(default_factory=list)
    _outputs: list[bytes] = field(default_factory=list)
    _shared: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)
    _count: int = 0

    def input(self, name: str, kind: str, shape: Iterable[int | str]) -> str:
        """What the caller brings; a dimension with a name may have any size."""
        self._inputs.append(_value(name, kind, shape))
        return name

    def output(self, made: str, name: str, kind: str, shape: Iterable[int | str]) -> None:
        """What the caller gets, under this name."""
        self._nodes.append(_node("Identity", [made], name, "", {}))
        self._outputs.append(_value(name, kind, shape))

    def constant(self, value: NDArray[Any] | np.generic) -> str:
        """A tensor of the graph's own; the same small one twice is kept once."""
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        raw = array.tobytes()
        key = (array.dtype.name, array.shape, raw if len(raw) <= 64 else self._new().encode())
        if key not in self._shared:
            self._shared[key] = name = self._new()
            self._constants.append(_tensor(array, raw, name))
        return self._shared[key]

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """One operator. An input that is left out is the empty string."""
        made = self._new()
        self._nodes.append(_node(operator, inputs, made, domain, attributes))
        return made

    def split(self, value: str, sizes: Iterable[int], *, axis: int) -> list[str]:
        """Parts of these sizes along an axis: the one operator here that makes several."""
        lengths = self.constant(np.array(list(sizes), np.int64))
        made = [self._new() for _ in sizes]
        node = _node("Split", [value, lengths], made[0], "", {"axis": axis})
        self._nodes.append(node + b"".join(_text(2, name) for name in made[1:]))
        return made

    def to_bytes(self) -> bytes:
        """The file."""
        graph = _text(2, "askline")
        for number, parts in ((1, self._nodes), (5, self._constants)):
            graph += b"".join(_bytes(number, part) for part in parts)
        for number, parts in ((11, self._inputs), (12, self._outputs)):
            graph += b"".join(_bytes(number, part) for part in parts)
        opsets = b"".join(_bytes(8, _text(1, name) + _int(2, version)) for name, version in _OPSETS)
        return _int(1, _IR_VERSION) + _text(2, "askline") + _bytes(7, graph) + opsets

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"


def _node(
    operator: str, inputs: Iterable[str], made: str, domain: str, attributes: dict[str, Any]
) -> bytes:
    node = b"".join(_text(1, name) for name in inputs) + _text(2, made) + _text(4, operator)
    node += b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
    return node + (_text(7, domain) if domain else b"")


def _attribute(name: str, value: Any) -> bytes:
    head = _text(1, name)
    if isinstance(value, float):
        return head + _key(2, _FIXED32) + struct.pack("<f", value) + _int(20, _FLOAT)
    if isinstance(value, int):
        return head + _int(3, value) + _int(20, _INT)
    if isinstance(value, str):
        return head + _text(4, value) + _int(20, _STRING)
    if isinstance(value, np.ndarray):
        return head + _bytes(5, _tensor(value, value.tobytes(), "")) + _int(20, _TENSOR)
    return head + b"".join(_int(8, one) for one in value) + _int(20, _INTS)


def _tensor(array: NDArray[Any], raw: bytes, name: str) -> bytes:
    dims = b"".join(_int(1, size) for size in array.shape)
    return dims + _int(2, _KINDS[array.dtype.name]) + _text(8, name) + _bytes(9, raw)


def _value(name: str, kind: str, shape: Iterable[int | str]) -> bytes:
    dims = b"".join(
        _bytes(1, _text(2, size) if isinstance(size, str) else _int(1, size)) for size in shape
    )
    tensor = _int(1, _KINDS[kind]) + _bytes(2, dims)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _int(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(value)) + value


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
