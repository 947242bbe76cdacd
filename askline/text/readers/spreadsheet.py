"""
What the readers of spreadsheets share: sheets, rows, a header row, and columns with the text.

The first row with several cells, all of them words, names the columns. If one of them is a column
that holds text, as in CSV, each row gives the text of that column. If not, each row is a row of a
table, and the names of the columns are its context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .document import Content, UnreadableError
from .kinds import BlockKind
from .records import RowFields, choose_fields
from .xml_package import PackedText

__all__ = [
    "Cell",
    "SheetRow",
    "SheetsBuilder",
]

_MAX_NAME_CHARACTERS = 80  # of a column
_DEFAULT_NAME = re.compile(
    r"(?:Sheet|Tabelle|Feuil|Hoja|Foglio|Blad|Ark|Planilha|Arkusz|Лист|Sayfa|シート|工作表)\s?\d+",
    re.IGNORECASE,
)


class Cell(NamedTuple):
    """A cell that is not empty."""

    column: int
    """Counted from 0."""
    text: str
    is_text: bool
    """False for numbers, dates and truth values."""


class SheetRow(NamedTuple):
    """A row that is not empty."""

    number: int
    """As the spreadsheet shows it, from 1."""
    cells: list[Cell]


class SheetsBuilder:
    """Collects the sheets of a workbook. `columns` are the names of the columns with the text."""

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self._columns = columns
        self._text = PackedText()
        self._found_names: list[str] = []
        self._has_wanted = not columns

    def add_sheet(self, name: str, rows: Iterable[SheetRow]) -> None:
        """Append a sheet; its name is the heading of its rows, unless it is a default name."""
        self._text.start_place()
        heading = "" if _DEFAULT_NAME.fullmatch(name.strip()) else " ".join(name.split())
        rows = iter(rows)
        for row in rows:
            if len(row.cells) > 1 or self._columns:
                self._add_table(row, rows, heading)
                return
            self._add_cells(row, heading, "text")  # a line above the table, such as its title

    def content(self, title: str) -> Content:
        """All sheets; UnreadableError if none has the columns that were asked for."""
        if not self._has_wanted:
            choose_fields(self._found_names, self._columns, "column")  # raises with their names
        return self._text.content("sheet", title)

    def _add_table(self, first: SheetRow, rows: Iterator[SheetRow], heading: str) -> None:
        is_header = all(
            cell.is_text and len(cell.text) <= _MAX_NAME_CHARACTERS for cell in first.cells
        )
        fields = self._choose_fields(first) if is_header else None
        if fields is not None:
            self._add_text_columns(first, fields, rows, heading)
        elif not self._columns:
            self._add_cells(first, heading, "columns" if is_header else "table")
            for row in rows:
                self._add_cells(row, heading, "row")

    def _choose_fields(self, header: SheetRow) -> RowFields | None:
        names = [cell.text.strip() for cell in header.cells]
        self._found_names += names
        try:
            fields = choose_fields(names, self._columns, "column")
        except UnreadableError:
            return None
        self._has_wanted = True
        return fields

    def _add_text_columns(
        self, header: SheetRow, fields: RowFields, rows: Iterator[SheetRow], heading: str
    ) -> None:
        columns = {cell.text.strip(): cell.column for cell in reversed(header.cells)}
        for number, cells in rows:
            values = {cell.column: cell.text for cell in cells}
            start = self._text.length
            for name in fields.texts:
                self._text.add(values.get(columns[name], ""))
            title = values.get(columns[fields.title], "") if fields.title else ""
            part_id = values.get(columns[fields.id], "") if fields.id else ""
            title = " ".join(title.split()) or heading
            self._text.end_part(start, title=title, row=number, part_id=part_id.strip())

    def _add_cells(self, row: SheetRow, heading: str, kind: BlockKind) -> None:
        start = self._text.length
        for number, cell in enumerate(row.cells):
            # A line break inside a cell would read as the end of the cell.
            self._text.add(" ".join(cell.text.split()), "cell" if number else kind)
        self._text.end_part(start, title=heading, row=row.number)
