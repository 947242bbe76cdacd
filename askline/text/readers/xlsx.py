"""
Read Excel workbooks (XLSX): one unit per row, with the names of the columns as its context.

Dates and percentages are written as people read them. Formulas give their stored results.
`xml_package` unpacks the file within limits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from .document import Content
from .spreadsheet import Cell, SheetRow, SheetsBuilder
from .xml_package import TitleHandler, XmlHandler, XmlPackage, read_package

__all__ = [
    "read_xlsx",
]

_WORKBOOK = "xl/workbook.xml"
_PROPERTIES = "docProps/core.xml"
_MAX_COLUMNS = 16_384
_MAX_DATE = 2_958_465  # 9999-12-31
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_QUOTED_FORMAT = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_PERCENT_FORMATS = frozenset((9, 10))


def read_xlsx(data: bytes, *, max_bytes: int, columns: Sequence[str] = ()) -> Content:
    """Text, blocks and title. Places are sheets; each row is a part with its number."""

    def read(package: XmlPackage) -> Content:
        return _read(package, columns)

    return read_package(data, "XLSX", max_bytes=max_bytes, old_suffix=".xls", read=read)


def _read(package: XmlPackage, columns: Sequence[str]) -> Content:
    package.require(_WORKBOOK)
    workbook, properties = _WorkbookHandler(), TitleHandler()
    package.parse(_WORKBOOK, workbook)
    package.parse(_PROPERTIES, properties)
    relations = package.relations(_WORKBOOK)
    by_kind = dict(relations.values())
    strings, styles = _StringsHandler(), _StylesHandler()
    package.parse(by_kind.get("sharedStrings", "xl/sharedStrings.xml"), strings)
    package.parse(by_kind.get("styles", "xl/styles.xml"), styles)
    builder = SheetsBuilder(columns)
    for name, relation in workbook.sheets:
        kind, target = relations.get(relation, ("", ""))
        if kind == "worksheet":
            sheet = _SheetHandler(strings.strings, styles.kinds(), workbook.first_day)
            package.parse(target, sheet)
            builder.add_sheet(name, sheet.rows)
    return builder.content(properties.title)


class _WorkbookHandler(XmlHandler):
    """The names of the sheets and their relations, in order."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.first_day = datetime(1899, 12, 30)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            self.sheets.append((attributes.get("name", ""), attributes.get("id", "")))
        elif name == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            self.first_day = datetime(1904, 1, 1)


class _StringsHandler(XmlHandler):
    """The strings that the cells refer to by number."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._pieces: list[str] = []
        self._inside = False
        self._is_phonetic = False

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002
        if name == "rPh":
            self._is_phonetic = True
        self._inside = name == "t" and not self._is_phonetic

    def end(self, name: str) -> None:
        self._inside = False
        if name == "si":
            self.strings.append("".join(self._pieces))
            self._pieces = []
        elif name == "rPh":
            self._is_phonetic = False

    def characters(self, text: str) -> None:
        if self._inside:
            self._pieces.append(text)


class _StylesHandler(XmlHandler):
    """Which cell styles show dates, and which percentages."""

    def __init__(self) -> None:
        self._formats: dict[str, str] = {}
        self._cell_formats: list[str] = []
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt":
            self._formats[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name == "cellXfs":
            self._inside = True
        elif name == "xf" and self._inside:
            self._cell_formats.append(attributes.get("numFmtId", ""))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._inside = False

    def kinds(self) -> list[str]:
        """`date`, `percent` or nothing for each cell style."""
        return [self._kind(number) for number in self._cell_formats]

    def _kind(self, number: str) -> str:
        code = _QUOTED_FORMAT.sub("", self._formats.get(number, ""))[:200].lower()
        if number.isdecimal() and len(number) < 4:
            if int(number) in _DATE_FORMATS:
                return "date"
            if int(number) in _PERCENT_FORMATS:
                return "percent"
        if "%" in code:
            return "percent"
        return "date" if re.search("[ymdh]", code.replace("general", "")) else ""


class _SheetHandler(XmlHandler):
    """Reads the rows of a sheet that are not empty."""

    def __init__(self, strings: list[str], kinds: list[str], first_day: datetime) -> None:
        self.rows: list[SheetRow] = []
        self._strings = strings
        self._kinds = kinds
        self._first_day = first_day
        self._row = 0
        self._cells: list[Cell] = []
        self._column = -1
        self._type = self._style = ""
        self._pieces: list[str] = []
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "row":
            number = attributes.get("r", "")
            known = number.isdecimal() and len(number) < 8
            self._row = max(int(number), self._row + 1) if known else self._row + 1
            self._cells, self._column = [], -1
        elif name == "c":
            found = _REFERENCE.fullmatch(attributes.get("r", ""))
            self._column = max(_column(found[1]), 0) if found else self._column + 1
            self._type, self._style = attributes.get("t", "n"), attributes.get("s", "")
            self._pieces = []
        self._inside = name == "v" or (name == "t" and self._type == "inlineStr")

    def end(self, name: str) -> None:
        self._inside = False
        if name == "c":
            text = self._value("".join(self._pieces))
            if text.strip() and self._column < _MAX_COLUMNS:
                is_text = self._type in ("s", "str", "inlineStr")
                self._cells.append(Cell(self._column, text, is_text))
        elif name == "row" and self._cells:
            self.rows.append(SheetRow(self._row, self._cells))
            self._cells = []

    def characters(self, text: str) -> None:
        if self._inside:
            self._pieces.append(text)

    def _value(self, value: str) -> str:
        if self._type == "s":
            at = int(value) if value.isdecimal() and len(value) < 10 else -1
            return self._strings[at] if 0 <= at < len(self._strings) else ""
        if self._type == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(value, "")
        if self._type == "e":
            return ""
        return self._number(value) if self._type == "n" else value

    def _number(self, value: str) -> str:
        style = int(self._style) if self._style.isdecimal() and len(self._style) < 7 else -1
        kind = self._kinds[style] if 0 <= style < len(self._kinds) else ""
        try:
            number = float(value)
        except ValueError:
            return value
        if kind == "date" and 0 <= number <= _MAX_DATE:
            return self._date(number)
        if kind == "percent":
            return f"{100 * number:.10g}%"
        return f"{number:.15g}"

    def _date(self, number: float) -> str:
        day = self._first_day + timedelta(seconds=round(number * 86_400))
        if number < 1:
            return day.strftime("%H:%M:%S").removesuffix(":00")
        text = day.isoformat(" ").removesuffix(":00")
        return text.removesuffix(" 00:00")


def _column(letters: str) -> int:
    """`A` is 0, `AA` is 26."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1
