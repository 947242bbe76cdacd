"""Read JSON lines: one object per line with a text field and optional `id` and `title`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from .document import Content, UnreadableError
from .offsets import line_starts
from .records import Piece, RowsBuilder, choose_fields

__all__ = [
    "read_jsonl",
    "string_pieces",
]

_WHITE_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u.{4}|\\.")
_DECODER = json.JSONDecoder()


def read_jsonl(source: str, *, columns: Sequence[str] = ()) -> Content:
    """One part per line that is not blank; bad lines are problems, the others are read."""
    rows = RowsBuilder()
    starts = line_starts(source)
    bounds = pairwise([*starts, len(source)])
    for number, (start, end) in enumerate(bounds, 1):
        line = source[start:end].rstrip("\r\n")
        if not line.strip():
            continue
        try:
            _add_row(rows, line, start, number, columns)
        except UnreadableError as error:
            rows.add_problem(number, str(error), error.reason)
    return rows.content(starts)


def _add_row(
    rows: RowsBuilder, line: str, offset: int, number: int, columns: Sequence[str]
) -> None:
    members = _members(line)
    fields = choose_fields(members, columns, "field")
    spans = []
    for name in fields.texts:
        value, start, end = members[name]
        if not isinstance(value, str):
            raise UnreadableError(f"{name!r} must be a string, got {json.dumps(value):.40}.")
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise UnreadableError(f"{name!r} has half of a surrogate pair. Write the file again.")
        spans.append((start + 1, end - 1))
    # By place: of equal names the last one counts, so the order of the names may differ.
    texts = [string_pieces(line, start, end, offset) for start, end in sorted(spans)]
    part_id, title = (
        _label(members[name][0]) if name is not None else "" for name in (fields.id, fields.title)
    )
    rows.add(texts, part_id, title, number)


def _label(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, (str, int)) else ""


def _members(line: str) -> dict[str, tuple[object, int, int]]:
    """The value of each field with its span; of equal names, the last one counts."""
    try:
        return dict(_walk_object(line))
    except json.JSONDecodeError as error:
        raise UnreadableError(f"Not JSON: {error.msg} at column {error.colno}.") from error
    except (ValueError, RecursionError) as error:  # a number with too many digits; deep nesting
        raise UnreadableError(f"JSON that cannot be read: {error}.") from error


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
        at = _skip_space(line, end)
        if line.startswith("}", at):
            break
        at = _expect(line, at, ",")
    _expect_end(line, at + 1)


def _expect(line: str, at: int, token: str) -> int:
    at = _skip_space(line, at)
    if not line.startswith(token, at):
        raise json.JSONDecodeError(f"Expecting {token!r}", line, at)
    return _skip_space(line, at + 1)


def _expect_end(line: str, at: int) -> None:
    at = _skip_space(line, at)
    if at < len(line):
        raise json.JSONDecodeError("Extra data", line, at)


def _skip_space(line: str, at: int) -> int:
    return _WHITE_SPACE.match(line, at).end()  # type: ignore[union-attr]


def string_pieces(line: str, start: int, end: int, offset: int) -> Iterator[Piece]:
    """The content of a string literal, each escape as a piece; the line starts at `offset`."""
    for escape in _ESCAPE.finditer(line, start, end):
        if escape.start() > start:
            yield line[start : escape.start()], offset + start, offset + escape.start()
        yield json.loads(f'"{escape[0]}"'), offset + escape.start(), offset + escape.end()
        start = escape.end()
    if end > start:
        yield line[start:end], offset + start, offset + end
