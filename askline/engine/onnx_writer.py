"""
Write ONNX files without the onnx package: the few protobuf fields that a graph needs.

An `OnnxGraph` is written from inputs to outputs. Each call returns the name of its result, to be
passed to the next call: `y = graph.node("Add", x, graph.constant(bias))`.
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
# ONNX's numbers of data types.
_DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}
_VARINT, _BYTES, _FIXED32 = 0, 2, 5  # protobuf's wire types
_FLOAT, _INT, _STRING, _TENSOR, _INTS = 1, 2, 3, 4, 7  # ONNX's types of attributes
_MAX_SHARED_BYTES = 64  # of a constant that is compared with earlier ones


@dataclass(slots=True, eq=False)
class OnnxGraph:
    """A graph under construction."""

    _nodes: list[bytes] = field(default_factory=list)
    _constants: list[tuple[bytes, memoryview]] = field(default_factory=list)
    """Per constant, its message up to the data, and the data."""
    _inputs: list[bytes] = field(default_factory=list)
    _outputs: list[bytes] = field(default_factory=list)
    _shared: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)
    _names: int = 0

    def input(self, name: str, dtype: str, shape: Iterable[int | str]) -> str:
        """Add an input; a dimension with a name may have any size."""
        self._inputs.append(_value_info(name, dtype, shape))
        return name

    def output(self, value: str, name: str, dtype: str, shape: Iterable[int | str]) -> None:
        """Make a value an output with this name."""
        self._nodes.append(_node("Identity", [value], name, "", {}))
        self._outputs.append(_value_info(name, dtype, shape))

    def constant(self, value: NDArray[Any] | np.generic) -> str:
        """Add a constant; equal small constants are stored once."""
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        name = self._new_name()
        if array.nbytes <= _MAX_SHARED_BYTES:
            key = (array.dtype.name, array.shape, array.tobytes())
            if key in self._shared:
                return self._shared[key]
            self._shared[key] = name
        # The data is copied only once, into the finished file: weights are megabytes.
        data = array.reshape(-1).view(np.uint8).data
        self._constants.append((_tensor_head(array, name), data))
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator. An optional input that is left out is the empty string."""
        name = self._new_name()
        self._nodes.append(_node(operator, inputs, name, domain, attributes))
        return name

    def split(self, value: str, sizes: Iterable[int], *, axis: int) -> list[str]:
        """Split a value into parts of these sizes: the only operator here with several outputs."""
        lengths = self.constant(np.array(list(sizes), np.int64))
        names = [self._new_name() for _ in sizes]
        node = _node("Split", [value, lengths], names[0], "", {"axis": axis})
        self._nodes.append(node + b"".join(_text(2, name) for name in names[1:]))
        return names

    def to_bytes(self) -> bytes:
        """The content of the ONNX file."""
        graph: list[bytes | memoryview] = [_text(2, "askline")]
        for head, data in self._constants:
            graph += [_key(5, _BYTES), _varint(len(head) + len(data)), head, data]
        for number, parts in ((1, self._nodes), (11, self._inputs), (12, self._outputs)):
            graph += [_bytes(number, part) for part in parts]
        opsets = b"".join(_bytes(8, _text(1, name) + _int(2, version)) for name, version in _OPSETS)
        start = _int(1, _IR_VERSION) + _text(2, "askline") + _key(7, _BYTES)
        return b"".join([start, _varint(sum(map(len, graph))), *graph, opsets])

    def _new_name(self) -> str:
        self._names += 1
        return f"v{self._names}"


def _node(
    operator: str, inputs: Iterable[str], output: str, domain: str, attributes: dict[str, Any]
) -> bytes:
    node = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, operator)
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
        return head + _bytes(5, _tensor_head(value, "") + value.tobytes()) + _int(20, _TENSOR)
    return head + b"".join(_int(8, one) for one in value) + _int(20, _INTS)


def _tensor_head(array: NDArray[Any], name: str) -> bytes:
    """The message of a tensor without its data, which ends it."""
    dims = b"".join(_int(1, size) for size in array.shape)
    start = dims + _int(2, _DTYPES[array.dtype.name]) + _text(8, name)
    return start + _key(9, _BYTES) + _varint(array.nbytes)


def _value_info(name: str, dtype: str, shape: Iterable[int | str]) -> bytes:
    dims = b"".join(
        _bytes(1, _text(2, size) if isinstance(size, str) else _int(1, size)) for size in shape
    )
    tensor = _int(1, _DTYPES[dtype]) + _bytes(2, dims)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


# Protobuf fields: each is a key (field number and wire type) and its value.


def _int(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(value)) + value


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
