"""
Read OpenDocument files: texts (ODT), presentations (ODP) and spreadsheets (ODS).

All three hold their text in `content.xml`. Headings, list items, tables and footnotes are kept;
comments and deleted text are left out. `xml_package` unpacks the file within limits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .document import Content, UnreadableError
from .kinds import BlockKind, PlaceUnit
from .spreadsheet import Cell, SheetRow, SheetsBuilder
from .xml_package import PackedText, TitleHandler, XmlHandler, XmlPackage, read_package

__all__ = [
    "read_opendocument",
]

_BODY = "content.xml"
_PROPERTIES = "meta.xml"
_MANIFEST = "META-INF/manifest.xml"
_SKIPPED_ELEMENTS = frozenset(
    """tracked-changes annotation forms automatic-styles font-face-decls scripts shapes
    sequence-decls note-citation covered-table-cell""".split()
)
_COUNTERS = frozenset(("page-number", "page-count", "date", "time"))
_PARAGRAPHS = frozenset(("p", "h"))
_CONTENTS_STYLE = "Contents_20_"
_CODE_STYLE = re.compile(
    r"(?:(?:source|program|html|example|listing)?(?:_20_)?(?:code|preformatted(?:_20_text)?|listing)"
    r"|example|verbatim|terminal|console)(?:_20_\w+)?",
    re.IGNORECASE,
)
_MAX_SPACES = 100
_NUMBERS = frozenset(("float", "percentage", "currency", "date", "time", "boolean"))


def read_opendocument(data: bytes, *, max_bytes: int, columns: Sequence[str] = ()) -> Content:
    """Text, blocks and title. Places are paragraphs, slides or sheets."""

    def read(package: XmlPackage) -> Content:
        return _read(package, columns)

    return read_package(data, "ODT", max_bytes=max_bytes, old_suffix=".doc", read=read)


def _read(package: XmlPackage, columns: Sequence[str]) -> Content:
    package.require(_BODY)
    manifest, properties = _ManifestHandler(), TitleHandler()
    package.parse(_MANIFEST, manifest)
    if manifest.is_encrypted:
        raise UnreadableError("It has a password. Save it without a password.", reason="password")
    package.parse(_PROPERTIES, properties)
    body = _BodyHandler(columns)
    package.parse(_BODY, body)
    return body.content(properties.title)


class _ManifestHandler(XmlHandler):
    """Finds out whether the content is encrypted."""

    def __init__(self) -> None:
        self.is_encrypted = False
        self._name = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "file-entry":
            self._name = attributes.get("full-path", "")
        elif name == "encryption-data" and self._name in (_BODY, "encrypted-package"):
            self.is_encrypted = True


class _Row:
    """The cells of an open table row."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.column = 0
        self.text: list[str] = []  # the paragraphs of the open cell
        self.is_number = False
        self.repeat = 1


class _BodyHandler(XmlHandler):
    """Reads paragraphs, which may be nested: a footnote is inside a paragraph."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._text = PackedText()
        self._sheets = SheetsBuilder(columns)
        self._unit: PlaceUnit = "paragraph"
        self._is_spreadsheet = False
        self._open: list[list[str]] = []  # the pieces of each open paragraph
        self._kinds: list[tuple[BlockKind, int]] = []
        self._parents: dict[str, str] = {}  # of the automatic styles
        self._list_depth = 0
        self._skip_depth = 0
        self._after_space: list[bool] = []
        # Tables: one entry per open table
        self._rows: list[_Row | None] = []
        self._row_counts: list[int] = []
        self._header_depth = 0
        self._sheet_name = ""
        self._sheet_rows: list[SheetRow] = []
        # Slides
        self._slide_start = 0
        self._slides = 0
        self._class = ""

    def content(self, title: str) -> Content:
        """The whole document, once it has been parsed."""
        if self._is_spreadsheet:
            return self._sheets.content(title)
        if self._unit == "slide":
            self._end_slide()
        return self._text.content(self._unit, title)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "style":  # in the automatic styles
            parent = attributes.get("parent-style-name", "")
            self._parents[attributes.get("name", "")] = parent
        if self._skip_depth or name in _SKIPPED_ELEMENTS or self._is_furniture(name, attributes):
            self._skip_depth += 1
        elif name in _PARAGRAPHS:
            self._start_paragraph(name, attributes)
        elif name == "spreadsheet":
            self._is_spreadsheet = True
        elif name == "list":
            self._list_depth += 1
        elif name == "page":
            self._start_slide()
        elif name == "frame":
            self._class = attributes.get("class", "")
        elif name == "table":
            self._rows.append(None)
            self._row_counts.append(0)
            if self._is_spreadsheet and len(self._rows) == 1:
                self._sheet_name, self._sheet_rows = attributes.get("name", ""), []
        elif name == "table-header-rows":
            self._header_depth = len(self._rows)
        elif self._rows:
            self._start_in_table(name, attributes)
        if self._open and not self._skip_depth:
            self._start_in_paragraph(name, attributes)

    def end(self, name: str) -> None:
        if self._skip_depth:
            self._skip_depth -= 1
        elif name in _PARAGRAPHS and self._open:
            self._end_paragraph()
        elif name == "list":
            self._list_depth -= 1
        elif name == "frame":
            self._class = ""
        elif name == "table-header-rows":
            self._header_depth = 0
        elif name == "table" and self._rows:
            self._rows.pop()
            self._row_counts.pop()
            if self._is_spreadsheet and not self._rows:
                self._sheets.add_sheet(self._sheet_name, self._sheet_rows)
        elif name == "table-row" and self._rows:
            self._end_row()
        elif name == "table-cell" and self._rows:
            self._end_cell()

    def characters(self, text: str) -> None:
        if not self._open or self._skip_depth:
            return
        # White space is collapsed as in HTML; spaces that count are elements.
        words = " ".join(text.split())
        if not words:
            if text and not self._after_space[-1]:
                self._add_characters(" ", after_space=True)
            return
        before = " " if text[0].isspace() and not self._after_space[-1] else ""
        after = " " if text[-1].isspace() else ""
        self._add_characters(before + words + after, after_space=bool(after))

    def _is_furniture(self, name: str, attributes: dict[str, str]) -> bool:
        """Whether it shows the date or the number of a slide, or is a line of the contents."""
        if name in _COUNTERS:
            return True
        if name in _PARAGRAPHS and not self._open:
            style = attributes.get("style-name", "")
            return self._parents.get(style, style).startswith(_CONTENTS_STYLE)
        is_footer = attributes.get("class") in ("date-time", "footer", "header", "page-number")
        return name == "frame" and is_footer

    def _add_characters(self, text: str, *, after_space: bool) -> None:
        self._open[-1].append(text)
        self._after_space[-1] = after_space

    def _start_paragraph(self, name: str, attributes: dict[str, str]) -> None:
        is_title = self._unit == "slide" and self._class == "title" and not self._rows
        self._open.append([])
        self._after_space.append(True)
        if name == "h" or is_title:
            self._kinds.append(("heading", _count(attributes.get("outline-level", "1"))))
        elif self._is_code(attributes.get("style-name", "")):
            self._kinds.append(("code", 0))
        elif self._list_depth:
            self._kinds.append(("item", self._list_depth))
        else:
            self._kinds.append(("text", 0))

    def _is_code(self, style: str) -> bool:
        return bool(_CODE_STYLE.fullmatch(self._parents.get(style, style)))

    def _start_in_paragraph(self, name: str, attributes: dict[str, str]) -> None:
        if name == "s":
            count = attributes.get("c", "1")
            known = count.isdecimal() and len(count) < 4
            spaces = min(int(count), _MAX_SPACES) if known else 1
            self._add_characters(" " * spaces, after_space=True)
        elif name == "tab":
            self._add_characters("\t", after_space=True)
        elif name == "line-break":
            self._add_characters("\n", after_space=True)

    def _end_paragraph(self) -> None:
        text = "".join(self._open.pop()).strip()
        kind, level = self._kinds.pop()
        self._after_space.pop()
        row = self._rows[-1] if self._rows else None
        if row is not None and not self._open:
            row.text.append(text)
            return
        if self._unit == "paragraph":
            self._text.start_place()
        self._text.add(text, kind, level)

    def _start_slide(self) -> None:
        if self._unit == "slide":
            self._end_slide()
        self._unit = "slide"
        self._text.start_place()
        self._slide_start = self._text.length
        self._slides += 1

    def _end_slide(self) -> None:
        # A part without a title: the heading of the slide before does not go on.
        self._text.end_part(self._slide_start, title="", row=self._slides)

    def _start_in_table(self, name: str, attributes: dict[str, str]) -> None:
        if name == "table-row":
            self._rows[-1] = _Row()
            self._row_counts[-1] += 1
            self._row_repeat = _count(attributes.get("number-rows-repeated", "1"))
        elif name == "table-cell":
            row = self._rows[-1]
            if row is not None:
                row.text = []
                row.is_number = attributes.get("value-type", "") in _NUMBERS
                row.repeat = _count(attributes.get("number-columns-repeated", "1"))

    def _end_cell(self) -> None:
        row = self._rows[-1]
        if row is not None:
            text = "\n".join(filter(None, row.text))
            if text:
                row.cells.append(Cell(row.column, text, not row.is_number))
            row.column += row.repeat
            row.text = []

    def _end_row(self) -> None:
        row, self._rows[-1] = self._rows[-1], None
        if row is None:
            return
        number = self._row_counts[-1]
        self._row_counts[-1] += self._row_repeat - 1
        if not row.cells:
            return
        if self._is_spreadsheet:
            if len(self._rows) == 1:
                self._sheet_rows.append(SheetRow(number, row.cells))
            return
        kind: BlockKind = "row" if number > 1 else "columns" if self._header_depth else "table"
        for cell in row.cells:
            if self._unit == "paragraph":
                self._text.start_place()
            self._text.add(" ".join(cell.text.split()), kind)
            kind = "cell"

    _row_repeat = 1


def _count(count: str) -> int:
    """
    The value of an attribute that is a count from 1.

    How often a row or cell is repeated matters only for the number of the next one.
    """
    return max(int(count), 1) if count.isdecimal() and len(count) < 8 else 1
