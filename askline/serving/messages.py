"""What goes between the web process and its workers: JSON, each piece after its length."""

from __future__ import annotations

import json
import struct
from asyncio import StreamReader
from typing import Any, BinaryIO

__all__ = [
    "Frame",
    "packed",
    "read_frame",
    "receive_frame",
]

Frame = dict[str, Any]

_LENGTH = struct.Struct(">I")


def packed(frame: Frame) -> bytes:
    """A frame as bytes. Escapes keep half characters, which UTF-8 could not carry."""
    body = json.dumps(frame, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(body)) + body


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next frame; None once the other side has gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return _frame(body) if len(body) == length else None


async def receive_frame(stream: StreamReader) -> Frame:
    """The next frame; IncompleteReadError once the other side has gone."""
    (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    return _frame(await stream.readexactly(length))


def _frame(body: bytes) -> Frame:
    frame: Frame = json.loads(body)
    return frame
