"""
Read CSV: a header, a column with the text, and optional `id` and `title` columns.

Of questions and answers, the answer is the text and the question is its title. Without a column of
text, each row is a row of a table, as in a spreadsheet.

Parsed here rather than by Python's csv module, which does not give the offsets of the fields. The
separator is whichever of comma, semicolon, tab and bar is most frequent in the header.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from .document import Content, UnreadableError
from .kinds import BlockKind
from .offsets import line_starts
from .records import Piece, RowsBuilder, choose_fields

__all__ = [
    "read_csv",
]

FieldSpan = tuple[int, int]
"""Start and end of a field, with its quotation marks."""

_SEPARATORS = ",;\t|"
_UNQUOTED = re.compile(r'[^"\r\n]*')
_WORD = re.compile(r"(?<!\w)[^\W\d_]{2,}(?!\w)")
_LINE_BREAK = re.compile(r"[\r\n]")
_SAMPLE_ROWS = 100  # that show whether the file is a table
_MAX_NAME_CHARACTERS = 80  # of a column


def read_csv(source: str, *, columns: Sequence[str] = ()) -> Content:
    """One part per row with text; outside tables, a row with other fields is a problem."""
    starts = line_starts(source)
    rows = RowsBuilder()
    records = _records(source, _separator(source), lambda at: bisect_right(starts, at))
    first = next(records, [])
    header = [_value(source, *span).strip() for span in first]
    if not any(header):
        raise UnreadableError("The first row is empty. Put the names of the columns there.")
    try:
        fields = choose_fields(header, columns, "column")
    except UnreadableError:
        sample = list(islice(records, _SAMPLE_ROWS))
        if columns or not _is_table(source, sample, len(header)):
            raise
        is_header = all(map(_is_name, filter(None, header)))
        kind: BlockKind = "columns" if is_header else "table"
        rows.add(_cells(source, first), "", "", 1, kind)
        fields, records = None, chain(sample, records)
    text_columns = [header.index(name) for name in fields.texts] if fields else []
    label_columns = [
        None if name is None else header.index(name)
        for name in ((fields.id, fields.title) if fields else ())
    ]
    for row, record in enumerate(records, start=2):
        if fields is None:
            rows.add(_cells(source, record), "", "", row, "row")
            continue
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


def _is_table(source: str, sample: list[list[FieldSpan]], width: int) -> bool:
    """Whether a row has a word, and at least half of the rows have the fields of the first one."""
    as_wide = sum(len(record) == width for record in sample)
    return 2 * as_wide >= len(sample) and any(
        _WORD.search(source, *span) for record in sample for span in record
    )


def _is_name(header: str) -> bool:
    return len(header) <= _MAX_NAME_CHARACTERS and bool(_WORD.search(header))


def _cells(source: str, record: list[FieldSpan]) -> Iterator[list[Piece]]:
    """The fields of a row without space around them; a line break inside becomes a space."""
    for field in record:
        pieces = [
            (_LINE_BREAK.sub(" ", text), start, end) for text, start, end in _pieces(source, *field)
        ]
        if len(pieces) == 1:  # with doubled quotation marks there is no space to remove
            [(text, start, _)] = pieces
            start += len(text) - len(text.lstrip())
            text = text.strip()
            pieces = [(text, start, start + len(text))]
        yield pieces


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
