"""Json lines: an object a line, its text under one of the usual names, `id` and `title` beside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise

from .document import Content, UnreadableError
from .offsets import line_starts
from .records import Piece, RowsBuilder, choose_field

__all__ = [
    "read_jsonl",
]

_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u.{4}|\\.")
_DECODER = json.JSONDecoder()


def read_jsonl(source: str, *, field: str | None = None) -> Content:
    """A part for each line that is not blank; bad lines are problems, the others are read."""
    rows = RowsBuilder()
    starts = line_starts(source)
    bounds = pairwise([*starts, len(source)])
    for number, (start, end) in enumerate(bounds, 1):
        line = source[start:end].rstrip("\r\n")
        if not line.strip():
            continue
        try:
            _add_row(rows, line, start, number, field)
        except UnreadableError as error:
            rows.problem(number, str(error))
    return rows.content(starts)


def _add_row(rows: RowsBuilder, line: str, at: int, number: int, field: str | None) -> None:
    members = _members(line)
    name = choose_field(members, field, "field")
    value, start, end = members[name]
    if not isinstance(value, str):
        raise UnreadableError(f"{name!r} must be a text, got {json.dumps(value):.40}.")
    if not value.isascii() and any("\ud800" <= mark <= "\udfff" for mark in value):
        raise UnreadableError(f"{name!r} holds half a character. Write the file anew.")
    part_id, title = (_label(members.get(key, ("", 0, 0))[0]) for key in ("id", "title"))
    rows.add(_pieces(line, start + 1, end - 1, at), part_id, title, number)


def _label(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, (str, int)) else ""


def _members(line: str) -> dict[str, tuple[object, int, int]]:
    """The fields of the object with the spans of their values; the last of equal names counts."""
    try:
        return dict(_walk_object(line))
    except json.JSONDecodeError as error:
        raise UnreadableError(f"Not JSON: {error.msg} at column {error.colno}.") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; nesting
        raise UnreadableError(f"Not JSON that can be read: {error}.") from error


def _walk_object(line: str) -> Iterator[tuple[str, tuple[object, int, int]]]:
    at = _expect(line, 0, "{")
    if line.startswith("}", at):
        _expect_end(line, at + 1)
        return
    while True:
        key, at = _DECODER.raw_decode(line, at)
        if not isinstance(key, str):
            raise json.JSONDecodeError("Expecting a name in double quotes", line, at)
        at = _expect(line, at, ":")
        value, end = _DECODER.raw_decode(line, at)
        yield key, (value, at, end)
        at = _skip(line, end)
        if line.startswith("}", at):
            break
        at = _expect(line, at, ",")
    _expect_end(line, at + 1)


def _skip(line: str, at: int) -> int:
    return _SPACE.match(line, at).end()  # type: ignore[union-attr]


def _expect(line: str, at: int, mark: str) -> int:
    at = _skip(line, at)
    if not line.startswith(mark, at):
        raise json.JSONDecodeError(f"Expecting {mark!r}", line, at)
    return _skip(line, at + 1)


def _expect_end(line: str, at: int) -> None:
    at = _skip(line, at)
    if at < len(line):
        raise json.JSONDecodeError("Extra data", line, at)


def _pieces(line: str, start: int, end: int, at: int) -> Iterator[Piece]:
    """What a string literal says, with each escape as a piece of its own."""
    for escape in _ESCAPE.finditer(line, start, end):
        if escape.start() > start:
            yield line[start : escape.start()], at + start, at + escape.start()
        yield json.loads(f'"{escape[0]}"'), at + escape.start(), at + escape.end()
        start = escape.end()
    if end > start:
        yield line[start:end], at + start, at + end
