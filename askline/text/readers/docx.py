"""
Word documents to text: paragraphs, headings, list items, table cells, foot- and endnotes.

Read with zipfile and expat of the standard library. Only the parts that hold text are unpacked, at
most `limit` bytes of them; a document type declaration, which is where entities that explode or
reach outside come from, is refused. Macros, deleted text and field codes are never looked at.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from array import array
from xml.parsers import expat

from .document import BlockKind, Blocks, Content, UnreadableError

__all__ = [
    "read_docx",
]

_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BODY = "word/document.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_STYLES = "word/styles.xml"
_CORE = "docProps/core.xml"
_PIECE = 2**16
_MARKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_SKIPPED = frozenset(("Fallback", "moveFrom", "del", "rubyPr"))


def read_docx(data: bytes, *, limit: int) -> Content:
    """Text, blocks and title; the places are paragraphs, counted as they follow each other."""
    if data.startswith(_OLD):
        raise UnreadableError(
            "It is a Word file with a password, or of the old kind. Save it as docx without one."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _Package(archive, limit).content()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UnreadableError("It is no docx, or damaged or cut short. Fetch it again.") from error


class _Package:
    """The parts of the archive, as far as they are asked for."""

    def __init__(self, archive: zipfile.ZipFile, limit: int) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        self._limit = limit
        self._left = limit

    def content(self) -> Content:
        if _BODY not in self._names:
            raise UnreadableError(f"It is a zip archive without {_BODY}, so no docx.")
        styles, core = _Styles(), _Core()
        self._parse(_STYLES, styles)
        self._parse(_CORE, core)
        text = _Text(styles.headings)
        for name in (_BODY, *_NOTES):
            self._parse(name, text)
        title = " ".join("".join(core.title).split())
        return Content("".join(text.pieces), text.blocks, "paragraph", text.starts, title)

    def _parse(self, name: str, handler: _Handler) -> None:
        if name not in self._names:
            return
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = lambda name, attributes: handler.start(
            _local(name), {_local(key): value for key, value in attributes.items()}
        )
        parser.EndElementHandler = lambda name: handler.end(_local(name))
        parser.CharacterDataHandler = handler.characters
        try:
            with self._archive.open(name) as stream:
                while piece := stream.read(_PIECE):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise UnreadableError(
                            f"Its text unpacks to more than {self._limit:,} bytes. Split it."
                        )
                    parser.Parse(piece)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise UnreadableError(f"{name} in it is damaged: {error}.") from error


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _refuse_doctype(*_: object) -> None:
    raise UnreadableError("It declares a document type, which no Word file does. It is not read.")


class _Handler:
    """What happens as elements come by, names without their namespaces."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element opens."""

    def end(self, name: str) -> None:
        """An element closes."""

    def characters(self, text: str) -> None:
        """Text in between."""


class _Core(_Handler):
    """The title among the properties."""

    def __init__(self) -> None:
        self.title: list[str] = []
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002
        self._inside = name == "title"

    def end(self, name: str) -> None:  # noqa: ARG002
        self._inside = False

    def characters(self, text: str) -> None:
        if self._inside:
            self.title.append(text)


class _Styles(_Handler):
    """Ids of the styles that make a heading. Ids are translated with Word, names are not."""

    def __init__(self) -> None:
        self.headings: set[str] = set()
        self._id = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        value = attributes.get("val", "")
        if name == "style":
            self._id = attributes.get("styleId", "")
        elif (
            (name == "name" and value.lower().startswith(("heading ", "title")))
            or (name == "basedOn" and value in self.headings)
            or (name == "outlineLvl" and value < "9")
        ):
            self.headings.add(self._id)


class _Table:
    """How far an open table has come."""

    def __init__(self) -> None:
        self.cells = 0  # that are open
        self.has_header = False  # its first row is marked as one that names the columns
        self.looks_so = False  # or drawn as one, as Word does unless it is told otherwise
        self._is_first = True  # the row at hand
        self._begins = -1  # the block that the row begins with
        self._count = 0  # of its blocks

    def kind(self, block: int) -> BlockKind:
        """Of the next block of the cell at hand."""
        self._count += 1
        if self._begins >= 0:
            return "cell"
        self._begins = block
        return "table" if self._is_first else "row"

    def end_row(self, blocks: Blocks) -> None:
        """What comes next begins another."""
        if self._begins >= 0:
            # Two columns are as a rule a list of facts, a name and a value in each row.
            names = self.has_header or (self.looks_so and self._count > 2)
            if self._is_first and names:
                blocks.name_columns(self._begins)
            self._is_first = False
        self._begins, self._count = -1, 0


class _Text(_Handler):
    """Paragraphs, which may hold others: a text box stands inside a paragraph."""

    def __init__(self, headings: set[str]) -> None:
        self.pieces: list[str] = []
        self.blocks = Blocks()
        self.starts = array("I")
        self._headings = headings
        self._length = 0
        self._open: list[list[str]] = []
        self._kinds: list[BlockKind] = []
        self._tables: list[_Table] = []
        self._skipped = 0
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._skipped or name in _SKIPPED:
            self._skipped += 1
        elif name == "p":
            self._open.append([])
            self._kinds.append("cell" if any(table.cells for table in self._tables) else "text")
        elif name == "tbl":
            for table in self._tables[-1:]:
                table.end_row(self.blocks)  # one inside another cuts the other's row in two
            self._tables.append(_Table())
        elif self._tables and name in ("tc", "tblLook", "tblHeader"):
            self._in_table(self._tables[-1], name, attributes)
        elif self._open:
            self._in_paragraph(name, attributes.get("val", ""))

    @staticmethod
    def _in_table(table: _Table, name: str, attributes: dict[str, str]) -> None:
        if name == "tc":
            table.cells += 1
        elif name == "tblHeader":
            table.has_header = attributes.get("val", "1") not in ("0", "false", "off")
        else:
            table.looks_so = attributes.get("firstRow") in ("1", "true", "on")

    def _in_paragraph(self, name: str, value: str) -> None:
        self._inside = name == "t"
        if name in _MARKS:
            self._open[-1].append(_MARKS[name])
        elif (name == "pStyle" and value in self._headings) or (
            name == "outlineLvl" and value < "9"
        ):
            self._kinds[-1] = "heading"

    def end(self, name: str) -> None:
        self._inside = False
        if self._skipped:
            self._skipped -= 1
        elif name == "p" and self._open:
            self._add("".join(self._open.pop()), self._kinds.pop())
        elif name == "tbl":
            del self._tables[-1:]
        elif self._tables and name == "tc":
            self._tables[-1].cells -= 1
        elif self._tables and name == "tr":
            self._tables[-1].end_row(self.blocks)

    def characters(self, text: str) -> None:
        if self._inside and self._open:
            self._open[-1].append(text)

    def _add(self, text: str, kind: BlockKind) -> None:
        self.starts.append(self._length)
        if text.strip():
            if kind == "cell" and self._tables:
                kind = self._tables[-1].kind(len(self.blocks))
            self.blocks.add(self._length, self._length + len(text), kind)
            self.pieces += (text, "\n")
            self._length += len(text) + 1
