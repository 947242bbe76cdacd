"""
Read log files: every line is a unit of its own.

Lines that are indented, as stack traces are, belong to the line above and are code.
"""

from __future__ import annotations

import re

from .document import Blocks, Content
from .offsets import TextBuilder, line_starts

__all__ = [
    "read_log",
]

_LINE = re.compile(r"[^\r\n]+")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # of terminals, such as colors


def read_log(source: str) -> Content:
    """One block per line; the offsets are those of the source."""
    builder = TextBuilder()
    blocks = Blocks()
    code_start = -1
    for line in _LINE.finditer(source):
        start, end = line.span()
        is_code = source[start].isspace()
        if not is_code and code_start >= 0:
            blocks.add(code_start, builder.length - 1, "code")
            code_start = -1
        begin = builder.length
        if is_code and code_start < 0:
            code_start = begin
        position = start
        for escape in _ESCAPE.finditer(source, start, end):
            builder.add(source[position : escape.start()], position, escape.start())
            position = escape.end()
        builder.add(source[position:end], position, end)
        if not is_code:
            blocks.add(begin, builder.length, "text")
        builder.insert("\n", end)
    if code_start >= 0:
        blocks.add(code_start, builder.length - 1, "code")
    return Content(builder.text(), blocks, "line", line_starts(source), segments=builder.segments)
