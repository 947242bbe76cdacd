"""
Read Word documents (DOCX): paragraphs, headings, list items, table cells, footnotes and endnotes.

Uses zipfile and expat of the standard library. Only the parts that hold text are unpacked, up to a
limit in bytes. A document type declaration is refused, because entity expansion attacks and
external entities need one. Macros, deleted text and field codes are ignored.
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

_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # of .doc files and of encrypted .docx files
_BODY = "word/document.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_STYLES = "word/styles.xml"
_PROPERTIES = "docProps/core.xml"
_CHUNK_BYTES = 2**16
_MAX_TAG_BYTES = 2**24
_MAX_RATIO = 100  # of the unpacked to the packed size; text reaches about 20
_MIN_RATIO_BYTES = 2**25  # below this unpacked size, the ratio does not matter
_CHARACTER_ELEMENTS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_OUTLINE_LEVELS = frozenset("012345678")  # 9 is body text
_SKIPPED_ELEMENTS = frozenset(("Fallback", "moveFrom", "del", "rubyPr"))


def read_docx(data: bytes, *, max_bytes: int) -> Content:
    """Text, blocks and title. Places are paragraphs in document order."""
    if data.startswith(_OLE_SIGNATURE):
        raise UnreadableError(
            "It is a .doc file or has a password. Save it as .docx without a password."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _Package(archive, len(data), max_bytes).content()
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise UnreadableError(
            "It is not a DOCX file, or it is damaged or truncated. Get it again."
        ) from error


class _Package:
    """The XML files of the archive."""

    def __init__(self, archive: zipfile.ZipFile, packed_bytes: int, max_bytes: int) -> None:
        self._archive = archive
        self._packed_bytes = packed_bytes
        self._names = set(archive.namelist())
        self._max_bytes = max_bytes
        self._bytes_left = max_bytes

    def content(self) -> Content:
        if _BODY not in self._names:
            raise UnreadableError(
                f"It is a zip archive without {_BODY}, so it is not a DOCX file. "
                "Give it the suffix of its format."
            )
        styles, properties = _StylesHandler(), _PropertiesHandler()
        self._parse(_STYLES, styles)
        self._parse(_PROPERTIES, properties)
        body = _BodyHandler(styles.headings)
        for name in (_BODY, *_NOTES):
            self._parse(name, body)
        title = " ".join("".join(properties.title).split())
        return Content("".join(body.pieces), body.blocks, "paragraph", body.starts, title)

    def _parse(self, name: str, handler: _Handler) -> None:
        if name not in self._names:
            return
        # Without namespaces: expat would repeat the address of the namespace in every name, and an
        # address can have a million characters.
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = lambda name, attributes: handler.start(
            _local_name(name), {_local_name(key): value for key, value in attributes.items()}
        )
        parser.EndElementHandler = lambda name: handler.end(_local_name(name))
        parser.CharacterDataHandler = handler.characters
        # The archive may state any size, also one larger than itself.
        info = self._archive.getinfo(name)
        max_unpacked = max(
            _MIN_RATIO_BYTES, min(info.compress_size, self._packed_bytes) * _MAX_RATIO
        )
        too_large = UnreadableError(
            f"{name} in it unpacks to more than {_MAX_RATIO} times its size, as no Word file does, "
            "and is refused for safety."
        )
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise zipfile.BadZipFile(f"compression {info.compress_type}, which no Word file has")
        if info.file_size > max_unpacked:  # before any of it is parsed
            raise too_large
        try:
            with self._archive.open(name) as stream:
                fed = waiting = 0
                # Expat reads an unfinished tag again from its start with every chunk. Chunks as
                # long as the tag so far keep the time linear.
                while chunk := stream.read(
                    min(max(_CHUNK_BYTES, waiting), _MAX_TAG_BYTES - waiting + 1)
                ):
                    self._count_bytes(len(chunk))
                    parser.Parse(chunk)
                    fed += len(chunk)
                    waiting = fed - max(parser.CurrentByteIndex, 0)
                    if fed > max_unpacked:
                        raise too_large
                    if waiting > _MAX_TAG_BYTES:
                        raise UnreadableError(
                            f"{name} in it has a tag of more than {_MAX_TAG_BYTES:,} bytes, as no "
                            "Word file does, and is refused for safety."
                        )
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise UnreadableError(f"{name} in it is damaged: {error}. Get it again.") from error

    def _count_bytes(self, count: int) -> None:
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise UnreadableError(
                f"Its text unpacks to more than {self._max_bytes:,} bytes. Split it."
            )


def _local_name(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse_doctype(*_: object) -> None:
    raise UnreadableError(
        "It declares a document type, as no Word file does, and is refused for safety."
    )


class _Handler:
    """Receives the elements of an XML file; names come without their namespaces."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An opening tag."""

    def end(self, name: str) -> None:
        """A closing tag."""

    def characters(self, text: str) -> None:
        """Text between tags."""


class _PropertiesHandler(_Handler):
    """Reads the title of the document."""

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


class _StylesHandler(_Handler):
    """Collects the heading styles and their levels. Word translates the ids, but not the names."""

    def __init__(self) -> None:
        self.headings: dict[str, int] = {}
        self._id = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        value = attributes.get("val", "")
        if name == "style":
            self._id = attributes.get("styleId", "")
        elif name == "name" and value.lower().startswith(("heading ", "title")):
            self.headings[self._id] = int(value[8:9]) if value[8:9].isdecimal() else 1
        elif name == "basedOn" and value in self.headings:
            self.headings.setdefault(self._id, self.headings[value])
        elif name == "outlineLvl" and value in _OUTLINE_LEVELS:
            self.headings[self._id] = int(value) + 1


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


class _BodyHandler(_Handler):
    """Reads paragraphs, which may be nested: a text box is inside a paragraph."""

    def __init__(self, headings: dict[str, int]) -> None:
        self.pieces: list[str] = []
        self.blocks = Blocks()
        self.starts = array("I")
        self._headings = headings
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
