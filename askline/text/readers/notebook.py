"""
Read Jupyter notebooks with exact offsets back into their JSON.

Markdown cells go through the Markdown reader, and code cells are code. Outputs, raw cells and
metadata are left out. Places are cells, counted as they are shown. The JSON is cut into tokens by
one regular expression instead of being loaded, because outputs can be many megabytes.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from .document import Blocks, Content, UnreadableError
from .jsonl import string_pieces
from .kinds import BlockKind
from .markdown import read_markdown
from .offsets import Segments, TextBuilder, replace_surrogates

__all__ = [
    "read_notebook",
]

# A string that is not closed ends with the file: otherwise it is searched again from each of its
# escaped quotation marks, which takes quadratic time.
_TOKEN = re.compile(r'"(?P<string>[^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)|[\[\]{},:]', re.DOTALL)
_CELL_LISTS = (("cells",), ("worksheets", "cells"))  # of format 4, and of formats 2 and 3
_SOURCE_KEYS = frozenset(("source", "input"))


@dataclass(slots=True)
class _Cell:
    """The type of a cell and the spans of the strings of its source, without quotes."""

    start: int
    kind: str = ""
    strings: list[tuple[int, int]] = field(default_factory=list)


def read_notebook(source: str) -> Content:
    """Text, blocks and title, which is the first heading."""
    if not source.lstrip().startswith("{"):
        raise UnreadableError("It is not a Jupyter notebook: a JSON object was expected.")
    builder = TextBuilder()
    blocks = Blocks()
    starts = array("I")
    title = ""
    for cell in _cells(source):
        starts.append(cell.start)
        content = _cell_content(source, cell)
        if content is None or not content.text.strip():
            continue
        title = title or content.title
        base = builder.length
        segments = content.segments
        assert segments is not None
        for first, last, start, end in segments.pieces(0, len(content.text)):
            builder.add(content.text[first:last], start, end)
        for block in content.blocks:
            blocks.add(base + block.start, base + block.end, block.kind, block.level)
        builder.insert("\n", builder.segments.end(builder.length))
    if not starts:
        raise UnreadableError("It is not a Jupyter notebook, or it has no cells.")
    return Content(builder.text(), blocks, "cell", starts, title, builder.segments)


def _cells(source: str) -> Iterator[_Cell]:
    """The cells in order. Brackets are counted with a stack, without recursion."""
    containers: list[str] = []  # the key under which each open object or list stands
    objects: list[bool] = []  # whether each of them is an object
    key = ""
    last_string = ""
    cell: _Cell | None = None
    cell_depth = 0
    for token in _TOKEN.finditer(source):
        mark = token[0]
        if mark in ("{", "["):
            containers.append(key)
            objects.append(mark == "{")
            if mark == "{" and cell is None and _is_cell_list(containers):
                cell, cell_depth = _Cell(token.start()), len(containers)
            key = ""
        elif mark in ("}", "]"):
            if cell is not None and len(containers) == cell_depth:
                yield cell
                cell = None
            if containers:
                key = containers.pop()
                objects.pop()
        elif mark == ":":
            key = last_string
        elif mark == ",":
            key = "" if objects and objects[-1] else key
        else:
            last_string = token["string"]
            if cell is not None and key:
                _add_string(cell, key, token, len(containers) - cell_depth)
            elif cell is not None and len(containers) == cell_depth + 1:
                _add_string(cell, containers[-1], token, 0)


def _is_cell_list(containers: list[str]) -> bool:
    """Whether the last container stands in the list of cells."""
    if len(containers) > 7:  # without a copy: brackets may be nested a million deep
        return False
    return tuple(name for name in containers[:-1] if name) in _CELL_LISTS


def _add_string(cell: _Cell, key: str, token: re.Match[str], depth: int) -> None:
    if key == "cell_type" and depth == 0:
        cell.kind = token["string"]
    elif key in _SOURCE_KEYS and depth == 0:
        cell.strings.append(token.span("string"))


def _cell_content(source: str, cell: _Cell) -> Content | None:
    """The content of a cell with the offsets of the notebook, or None if it has no text to read."""
    text = TextBuilder()
    for start, end in cell.strings:
        try:
            for piece, first, last in string_pieces(source, start, end, 0):
                text.add(replace_surrogates(piece), first, last)
        except ValueError as error:
            raise UnreadableError(f"A cell is not JSON: {error}. Write the file again.") from error
    if cell.kind in ("markdown", "heading"):
        content = read_markdown(text.text())
        inner = content.segments or Segments()
        return Content(
            content.text,
            content.blocks,
            "cell",
            content.starts,
            content.title,
            inner.through(text.segments),
        )
    if cell.kind != "code":
        return None
    blocks = Blocks()
    kind: BlockKind = "code"
    blocks.add(0, text.length, kind)
    return Content(text.text(), blocks, "cell", array("I"), "", text.segments)
