"""Read the tables of reStructuredText: grid, simple, list and CSV tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .kinds import BlockKind
from .markup import LineSpan, MarkupWriter, SourceLines

__all__ = [
    "GRID_BORDER",
    "SIMPLE_BORDER",
    "RstTables",
]

GRID_BORDER = re.compile(r"\+(?:[-=]+\+)+\s*\Z")
SIMPLE_BORDER = re.compile(r"=+(?: +=+)+\s*\Z")
_COLUMN_BORDER = re.compile(r"-+(?: +-+)*\s*\Z")
_LIST_ROW = re.compile(r"\s*[*+-]\s+(?=[*+-](?:\s|\Z))")
_LIST_CELL = re.compile(r"\s*[*+-](?:\s+|\Z)")
_CSV_CELL = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^,"]+))[^,]*')


class RstTables:
    """Reads tables at the current line, whose number is `at`, and moves behind them."""

    def __init__(self, lines: SourceLines, writer: MarkupWriter) -> None:
        self.lines = lines
        self.writer = writer
        self.at = 0

    def body_end(self, column: int) -> int:
        """The first line at or after the current one that is not indented more than `column`."""
        at = self.at
        while at < len(self.lines) and (self.lines.is_blank(at) or self.lines.indent(at) > column):
            at += 1
        return at

    def read_list_table(self, column: int, header: list[LineSpan]) -> None:
        """A `list-table`: a list of rows, each a list of cells."""
        end = self.body_end(column)
        kind: BlockKind = "columns" if header else "table"
        row: list[list[LineSpan]] = []
        level = 0
        for number in range(self.at, end):
            line = self.lines.text(number)
            start, stop = self.lines.span(number)
            first = _LIST_ROW.match(line)
            if first and (not row or self.lines.indent(number) < level):
                if row:
                    self.writer.add_row(row, kind)
                    kind = "row"
                row, level = [], first.end()
            cell = _LIST_CELL.match(line, level) if first or self._is_cell(line, level) else None
            if cell:
                row.append([(start + cell.end(), stop)])
            elif row and line.strip():
                row[-1].append((start, stop))
        self.writer.add_row(row, kind)
        self.at = end

    @staticmethod
    def _is_cell(line: str, level: int) -> bool:
        return not line[:level].strip() and line[level : level + 1] in ("*", "+", "-")

    def read_csv_table(self, column: int, header: list[LineSpan]) -> None:
        """A `csv-table`. `header` has the column names, if they are an option."""
        end = self.body_end(column)
        if len(header) > 1:
            self.writer.add_row([[cell] for cell in header], "columns")
        kind: BlockKind = "columns" if header == [(0, 0)] else "table"
        for number in range(self.at, end):
            cells = [[cell] for cell in self.csv_cells(*self.lines.span(number))]
            if cells:
                self.writer.add_row(cells, kind if number == self.at else "row")
        self.at = end

    def csv_cells(self, start: int, end: int) -> Iterator[LineSpan]:
        """The spans of the cells of one line, without quotes."""
        for cell in _CSV_CELL.finditer(self.lines.source, start, end):
            yield cell.span("quoted" if cell["quoted"] is not None else "plain")

    def read_grid_table(self, column: int) -> None:
        """A table with all borders drawn; merged cells belong to their first column."""
        first = self.at
        while self.lines.text(self.at)[column : column + 1] in ("+", "|"):
            self.at += 1
        border = self.lines.text(first)
        bounds = [at for at, character in enumerate(border) if character == "+"]
        has_header = any(
            "=" in line and GRID_BORDER.match(line[column:])
            for line in map(self.lines.text, range(first, self.at))
        )
        kind: BlockKind = "columns" if has_header else "table"
        cells: list[list[LineSpan]] = [[] for _ in bounds]
        for number in range(first + 1, self.at):
            line = self.lines.text(number)
            if GRID_BORDER.match(line[column:]):
                if any(cells):
                    self.writer.add_row([cell for cell in cells if cell], kind)
                    kind = "row"
                    cells = [[] for _ in bounds]
                continue
            self._add_grid_line(number, line, bounds, cells)
        if any(cells):
            self.writer.add_row([cell for cell in cells if cell], kind)

    def _add_grid_line(
        self, number: int, line: str, bounds: list[int], cells: list[list[LineSpan]]
    ) -> None:
        start = self.lines.starts[number]
        edges = [(cell, at) for cell, at in enumerate(bounds) if line[at : at + 1] in ("|", "+")]
        for (cell, left), (_, right) in pairwise(edges):
            if line[left + 1 : right].strip(" -=+"):
                cells[cell].append((start + left + 1, start + right))

    def read_simple_table(self, column: int) -> None:
        """A table between lines of `=`. A row without a first cell continues the one above."""
        border = self.lines.text(self.at)
        columns = [found.start() for found in re.finditer(r"=+", border)]
        self.at += 1
        rows: list[list[list[LineSpan]]] = []
        header = False
        while self.at < len(self.lines):
            line = self.lines.text(self.at)
            if SIMPLE_BORDER.match(line[column:]):
                if self.lines.is_blank(self.at + 1) or header:
                    self.at += 1
                    break
                header = True
                self._add_rows(rows, "columns")
                rows = []
            elif line.strip() and not line[:column].strip():
                if not _COLUMN_BORDER.match(line[column:]):
                    self._add_simple_line(line, columns, rows)
            elif line.strip():
                break  # the table is not closed
            self.at += 1
        self._add_rows(rows, "row" if header else "table")

    def _add_simple_line(
        self, line: str, columns: list[int], rows: list[list[list[LineSpan]]]
    ) -> None:
        start = self.lines.starts[self.at]
        if line[columns[0] : columns[1]].strip() or not rows:
            rows.append([[] for _ in columns])
        for cell, (left, right) in enumerate(zip(columns, [*columns[1:], len(line)], strict=True)):
            if line[left:right].strip():
                rows[-1][cell].append((start + left, start + min(right, len(line))))

    def _add_rows(self, rows: list[list[list[LineSpan]]], kind: BlockKind) -> None:
        for number, row in enumerate(rows):
            first = kind if number == 0 else "columns" if kind == "columns" else "row"
            self.writer.add_row([cell for cell in row if cell], first)
