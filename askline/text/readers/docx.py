"""
Read Word documents (DOCX): paragraphs, headings, list items, table cells, footnotes and endnotes.

Macros, deleted text and field codes are ignored. `xml_package` unpacks the file within limits.
"""

from __future__ import annotations

import re
from array import array

from .document import Blocks, Content
from .kinds import BlockKind
from .xml_package import TitleHandler, XmlHandler, XmlPackage, read_package

__all__ = [
    "read_docx",
]

_BODY = "word/document.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_STYLES = "word/styles.xml"
_CODE_STYLE = re.compile(
    r"(?:source |program )?code(?: block| example)?|html preformatted|macro text|verbatim",
    re.IGNORECASE,
)
_PROPERTIES = "docProps/core.xml"
_CHARACTER_ELEMENTS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_OUTLINE_LEVELS = frozenset("012345678")  # 9 is body text
_SKIPPED_ELEMENTS = frozenset(("Fallback", "moveFrom", "del", "rubyPr"))


def read_docx(data: bytes, *, max_bytes: int) -> Content:
    """Text, blocks and title. Places are paragraphs in document order."""
    return read_package(data, "DOCX", max_bytes=max_bytes, old_suffix=".doc", read=_read)


def _read(package: XmlPackage) -> Content:
    package.require(_BODY)
    styles, properties = _StylesHandler(), TitleHandler()
    package.parse(_STYLES, styles)
    package.parse(_PROPERTIES, properties)
    body = _BodyHandler(styles.headings, styles.code)
    for name in (_BODY, *_NOTES):
        package.parse(name, body)
    text = "".join(body.pieces)
    return Content(text, body.blocks, "paragraph", body.starts, properties.title)


class _StylesHandler(XmlHandler):
    """Collects the styles of headings, with levels, and of code. Word does not translate names."""

    def __init__(self) -> None:
        self.headings: dict[str, int] = {}
        self.code = set[str]()
        self._id = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        value = attributes.get("val", "")
        if name == "style":
            self._id = attributes.get("styleId", "")
        elif name == "name" and value.lower().startswith(("heading ", "title")):
            self.headings[self._id] = int(value[8:9]) if value[8:9].isdecimal() else 1
        elif (
            _CODE_STYLE.fullmatch(value) if name == "name" else self._is_based_on_code(name, value)
        ):
            self.code.add(self._id)
        elif name == "basedOn" and value in self.headings:
            self.headings.setdefault(self._id, self.headings[value])
        elif name == "outlineLvl" and value in _OUTLINE_LEVELS:
            self.headings[self._id] = int(value) + 1

    def _is_based_on_code(self, name: str, value: str) -> bool:
        return name == "basedOn" and value in self.code


class _Table:
    """The state of an open table."""

    def __init__(self) -> None:
        self.open_cells = 0
        self.has_header = False  # the first row is marked as a header
        self.styled_header = False  # the first row is only styled as one, which is Word's default
        self._is_first_row = True
        self._first_block = -1  # the block that the current row starts with
        self._row_blocks = 0

    def next_kind(self, block: int) -> BlockKind:
        """The kind of the next block in the current cell."""
        self._row_blocks += 1
        if self._first_block >= 0:
            return "cell"
        self._first_block = block
        return "table" if self._is_first_row else "row"

    def end_row(self, blocks: Blocks) -> None:
        """Close the current row and mark it if it is the header."""
        if self._first_block >= 0:
            # A table of two columns is usually a list of facts: a name and a value per row.
            is_header = self.has_header or (self.styled_header and self._row_blocks > 2)
            if self._is_first_row and is_header:
                blocks.mark_header(self._first_block)
            self._is_first_row = False
        self._first_block, self._row_blocks = -1, 0


class _BodyHandler(XmlHandler):
    """Reads paragraphs, which may be nested: a text box is inside a paragraph."""

    def __init__(self, headings: dict[str, int], code: set[str]) -> None:
        self.pieces: list[str] = []
        self.blocks = Blocks()
        self.starts = array("I")
        self._headings = headings
        self._code = code
        self._length = 0
        self._open: list[list[str]] = []  # the pieces of each open paragraph
        self._kinds: list[BlockKind] = []
        self._levels: list[int] = []
        self._tables: list[_Table] = []
        self._open_cells = 0  # of all tables
        self._skip_depth = 0
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._skip_depth or name in _SKIPPED_ELEMENTS:
            self._skip_depth += 1
        elif name == "p":
            self._open.append([])
            self._kinds.append("cell" if self._open_cells else "text")
            self._levels.append(0)
        elif name == "tbl":
            for table in self._tables[-1:]:
                table.end_row(self.blocks)  # a nested table splits the outer row in two
            self._tables.append(_Table())
        elif self._tables and name in ("tc", "tblLook", "tblHeader"):
            self._start_in_table(self._tables[-1], name, attributes)
        elif self._open:
            self._start_in_paragraph(name, attributes.get("val", ""))

    def _start_in_table(self, table: _Table, name: str, attributes: dict[str, str]) -> None:
        if name == "tc":
            table.open_cells += 1
            self._open_cells += 1
        elif name == "tblHeader":
            table.has_header = attributes.get("val", "1") not in ("0", "false", "off")
        else:
            table.styled_header = attributes.get("firstRow") in ("1", "true", "on")

    def _start_in_paragraph(self, name: str, value: str) -> None:
        self._inside = name == "t"
        if name in _CHARACTER_ELEMENTS:
            self._open[-1].append(_CHARACTER_ELEMENTS[name])
        elif name == "pStyle" and value in self._headings:
            self._kinds[-1], self._levels[-1] = "heading", self._headings[value]
        elif name == "pStyle" and value in self._code and self._kinds[-1] == "text":
            self._kinds[-1] = "code"
        elif name == "outlineLvl" and value in _OUTLINE_LEVELS:
            self._kinds[-1], self._levels[-1] = "heading", int(value) + 1
        elif name == "ilvl" and self._kinds[-1] == "text":
            depth = int(value) + 1 if value in _OUTLINE_LEVELS else 1
            self._kinds[-1], self._levels[-1] = "item", depth

    def end(self, name: str) -> None:
        self._inside = False
        if self._skip_depth:
            self._skip_depth -= 1
        elif name == "p" and self._open:
            text = "".join(self._open.pop())
            self._add_paragraph(text, self._kinds.pop(), self._levels.pop())
        elif name == "tbl":
            for table in self._tables[-1:]:
                self._open_cells -= table.open_cells
            del self._tables[-1:]
        elif self._tables and name == "tc":
            self._tables[-1].open_cells -= 1
            self._open_cells -= 1
        elif self._tables and name == "tr":
            self._tables[-1].end_row(self.blocks)

    def characters(self, text: str) -> None:
        if self._inside and self._open:
            self._open[-1].append(text)

    def _add_paragraph(self, text: str, kind: BlockKind, level: int) -> None:
        self.starts.append(self._length)
        if text.strip():
            if kind == "cell" and self._tables:
                kind = self._tables[-1].next_kind(len(self.blocks))
            self.blocks.add(self._length, self._length + len(text), kind, level)
            self.pieces += (text, "\n")
            self._length += len(text) + 1
