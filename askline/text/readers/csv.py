"""
Read CSV: a header, a column with the text, and optional `id` and `title` columns.

Of questions and answers, the answer is the text and the question is its title.

Parsed here rather than by Python's csv module, which does not give the offsets of the fields. The
separator is whichever of comma, semicolon, tab and bar is most frequent in the header.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from .document import Content, UnreadableError
from .offsets import line_starts
from .records import Piece, RowsBuilder, choose_fields

__all__ = [
    "read_csv",
]

FieldSpan = tuple[int, int]
"""Start and end of a field, with its quotation marks."""

_SEPARATORS = ",;\t|"
_UNQUOTED = re.compile(r'[^"\r\n]*')


def read_csv(source: str, *, columns: Sequence[str] = ()) -> Content:
    """One part per row with text; rows with too few or too many fields are problems."""
    starts = line_starts(source)
    rows = RowsBuilder()
    records = _records(source, _separator(source), lambda at: bisect_right(starts, at))
    header = [_value(source, *span).strip() for span in next(records, [])]
    if not any(header):
        raise UnreadableError("The first row is empty. Put the names of the columns there.")
    fields = choose_fields(header, columns, "column")
    text_columns = [header.index(name) for name in fields.texts]
    label_columns = [
        None if name is None else header.index(name) for name in (fields.id, fields.title)
    ]
    for row, record in enumerate(records, start=2):
        line = bisect_right(starts, record[0][0])
        if len(record) != len(header):
            if record[0][0] < record[-1][1]:  # not a blank line
                rows.add_problem(
                    line, f"Expected {len(header)} fields as in the header, got {len(record)}."
                )
            continue
        part_id, title = (
            "" if column is None else _value(source, *record[column]) for column in label_columns
        )
        texts = [_pieces(source, *record[column]) for column in text_columns]
        rows.add(texts, part_id.strip(), " ".join(title.split()), row)
    return rows.content(starts)


def _separator(source: str) -> str:
    unquoted = []
    position = 0
    while True:
        found = _UNQUOTED.match(source, position)
        assert found is not None  # it may be empty
        unquoted.append(found[0])
        closed = _quoted_end(source, found.end())
        if closed is None:
            break
        position = closed
    header = "".join(unquoted)
    return max(_SEPARATORS, key=header.count)


def _quoted_end(source: str, start: int) -> int | None:
    """The end of the quoted field at `start`; None if no field starts or ends there."""
    if not source.startswith('"', start):
        return None
    at = source.find('"', start + 1)
    while at >= 0 and source.startswith('"', at + 1):
        at = source.find('"', at + 2)
    return at + 1 if at >= 0 else None


def _records(
    source: str, separator: str, line_of: Callable[[int], int]
) -> Iterator[list[FieldSpan]]:
    mark = re.escape(separator)
    field = re.compile(rf"(?:[^{mark}\"\r\n][^{mark}\r\n]*)?(?P<end>{mark}|\r\n?|\n|\Z)")
    field_end = re.compile(rf"(?P<end>{mark}|\r\n?|\n|\Z)")
    position = 0
    record: list[FieldSpan] = []
    while position < len(source) or record:
        closed = _quoted_end(source, position)
        found = field.match(source, position) if closed is None else field_end.match(source, closed)
        if not found:
            raise UnreadableError(
                "A quotation mark is not closed, or is not doubled inside a field. Correct it.",
                line=line_of(position),
            )
        record.append((position, found.start("end")))
        position = found.end()
        if found["end"] != separator:
            yield record
            record = []


def _value(source: str, start: int, end: int) -> str:
    return "".join(piece for piece, _, _ in _pieces(source, start, end))


def _pieces(source: str, start: int, end: int) -> Iterator[Piece]:
    """A field without its quotation marks; each doubled quotation mark is a piece of its own."""
    if source[start:end].startswith('"'):
        start, end = start + 1, end - 1
        while (at := source.find('""', start, end)) >= 0:
            if at > start:
                yield source[start:at], start, at
            yield '"', at, at + 2
            start = at + 2
    if end > start:
        yield source[start:end], start, end
