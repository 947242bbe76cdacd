"""What the reader of one format hands back, before it becomes a `Document`."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from ...errors import Problem
from .document import Blocks, Part, Unit
from .offsets import Segments

__all__ = ["Content", "Unreadable"]


class Unreadable(Exception):  # noqa: N818 – it never leaves this room
    """Why a file cannot be read; `read_document` raises it as a `DataError` with the path."""

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Content:
    """The fields of a `Document` that depend on the format. The path of a problem is filled in."""

    text: str
    blocks: Blocks
    unit: Unit
    starts: array[int]
    title: str = ""
    segments: Segments | None = None
    parts: tuple[Part, ...] = ()
    problems: tuple[Problem, ...] = ()
