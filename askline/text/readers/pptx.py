"""
Read PowerPoint presentations (PPTX): slides in order, their titles, text, tables and notes.

The title of a slide is a heading. Dates, footers and slide numbers are left out. `xml_package`
unpacks the file within limits.
"""

from __future__ import annotations

from .document import Content
from .kinds import BlockKind
from .xml_package import PackedText, TitleHandler, XmlHandler, XmlPackage, read_package

__all__ = [
    "read_pptx",
]

_PRESENTATION = "ppt/presentation.xml"
_PROPERTIES = "docProps/core.xml"
_TITLES = frozenset(("title", "ctrTitle"))
_MAX_LABEL_WORDS = 2
_FURNITURE = frozenset(("dt", "ftr", "hdr", "sldNum"))
_SHAPES = frozenset(("sp", "graphicFrame"))
_GENERIC_TITLES = frozenset(("PowerPoint Presentation", "PowerPoint-Präsentation"))


def read_pptx(data: bytes, *, max_bytes: int) -> Content:
    """Text, blocks and title. Places are slides; the notes of a slide follow it."""
    return read_package(data, "PPTX", max_bytes=max_bytes, old_suffix=".ppt", read=_read)


def _read(package: XmlPackage) -> Content:
    package.require(_PRESENTATION)
    order, properties = _OrderHandler(), TitleHandler()
    package.parse(_PRESENTATION, order)
    package.parse(_PROPERTIES, properties)
    relations = package.relations(_PRESENTATION)
    text = PackedText()
    first_title = ""
    for number, each in enumerate(order.ids, 1):
        title = _add_slide(text, package, relations.get(each, ("", ""))[1], number)
        first_title = first_title or title
    title = properties.title
    return text.content("slide", first_title if not title or title in _GENERIC_TITLES else title)


def _add_slide(text: PackedText, package: XmlPackage, name: str, number: int) -> str:
    """Append a slide and return its title."""
    text.start_place()
    start = text.length
    slide = _SlideHandler()
    package.parse(name, slide)
    for title in slide.titles:
        text.add(title, "heading", 1)
    for kind, paragraph in slide.paragraphs:
        text.add(paragraph, kind)
    if slide.labels:
        text.add(", ".join(slide.labels), "text")
    for relation, target in package.relations(name).values():
        if relation in ("diagramData", "notesSlide"):
            other = _SlideHandler(is_notes=relation == "notesSlide")
            package.parse(target, other)
            for block, paragraph in other.paragraphs:
                text.add(paragraph, block)
    # A part without a title: the heading of the slide before does not go on.
    text.end_part(start, title="", row=number)
    return " ".join(" ".join(slide.titles).split())


def _is_label(text: str) -> bool:
    return len(text.split()) <= _MAX_LABEL_WORDS and text[-1] not in ".!?:"


class _OrderHandler(XmlHandler):
    """The relation ids of the slides in their order."""

    keeps_prefixes = True

    def __init__(self) -> None:
        self.ids: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sldId":
            self.ids += [value for key, value in attributes.items() if key.endswith(":id")]


class _SlideHandler(XmlHandler):
    """Reads the paragraphs of a slide; of notes, only the body."""

    def __init__(self, *, is_notes: bool = False) -> None:
        self.titles: list[str] = []
        self.paragraphs: list[tuple[BlockKind, str]] = []
        self.labels: list[str] = []
        """The texts of one or two words outside placeholders: labels in a drawing, each once."""
        self._is_notes = is_notes
        self._placeholder = "" if not is_notes else "none"
        self._pieces: list[str] = []
        self._inside = False
        self._skip_depth = 0
        self._table_rows = -1  # of the open table; -1 outside
        self._row_cells = 0
        self._cell: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._skip_depth or name == "Fallback" or self._is_counter(name, attributes):
            self._skip_depth += 1
        elif name in _SHAPES:
            self._placeholder = "none" if self._is_notes else ""
        elif name == "ph":
            self._placeholder = attributes.get("type", "obj")
        elif name == "tbl":
            self._table_rows = 0
        elif name == "tr":
            self._row_cells = 0
        elif name == "tc":
            self._cell = []
        elif name == "p":
            self._pieces = []
        elif name == "br":
            self._pieces.append("\n")
        self._inside = name == "t" and not self._skip_depth

    def end(self, name: str) -> None:
        self._inside = False
        if self._skip_depth:
            self._skip_depth -= 1
        elif name == "p":
            self._end_paragraph("".join(self._pieces).replace("\v", "\n").strip())
            self._pieces = []
        elif name == "tc" and self._table_rows >= 0:
            self._end_cell("\n".join(self._cell))
        elif name == "tr" and self._table_rows >= 0:
            self._table_rows += 1
        elif name == "tbl":
            self._table_rows = -1

    def characters(self, text: str) -> None:
        if self._inside:
            self._pieces.append(text)

    @staticmethod
    def _is_counter(name: str, attributes: dict[str, str]) -> bool:
        """Whether it is a field that shows the date or the number of the slide."""
        return name == "fld" and attributes.get("type", "").startswith(("slidenum", "datetime"))

    def _end_paragraph(self, text: str) -> None:
        if not text:
            return
        if self._table_rows >= 0:
            self._cell.append(text)
        elif self._is_notes:
            if self._placeholder == "body":
                self.paragraphs.append(("text", text))
        elif self._placeholder in _TITLES:
            self.titles.append(text)
        elif not self._placeholder and _is_label(text):
            if len(text) > 1 and text not in self.labels:
                self.labels.append(" ".join(text.split()))
        elif self._placeholder not in _FURNITURE:
            self.paragraphs.append(("text", text))

    def _end_cell(self, text: str) -> None:
        if not text:
            return
        kind: BlockKind = "cell"
        if not self._row_cells:
            # The first row of a table with three or more rows names the columns, as in Word.
            kind = "row" if self._table_rows else "table"
        self._row_cells += 1
        self.paragraphs.append((kind, text.replace("\n", " ")))
