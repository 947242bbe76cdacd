"""
Read XML of any kind with exact offsets: the text of its elements.

Titles are headings, as in DocBook, JATS and feeds; listings are code. In data, an element that
starts with a `name` and goes on is a section with that heading. A short value in an element
of its own, as in data, is shown with the name of the element: `port: 8080`. One regular expression
cuts the source into tags, entities and text. Nothing is expanded or loaded: entities other than the
five of XML stay as they are written, and a document type declaration is skipped. Broken markup
never fails.
"""

from __future__ import annotations

import re
from html import unescape

from .document import Blocks, Content
from .kinds import BlockKind
from .offsets import TextBuilder, line_starts
from .records import Piece

__all__ = [
    "read_xml",
]

_TOKEN = re.compile(
    r"""<(?:
      !--[^-]*(?:-(?!->)[^-]*)*(?:-->|\Z)
    | !\[CDATA\[(?P<cdata>[^\]]*(?:\](?!\]>)[^\]]*)*)(?:\]\]>|\Z)
    | \?[^<>]*>
    | ![A-Za-z][^<>\[]*(?P<subset>\[)?>?
    | (?P<close>/?)(?P<name>[A-Za-z_][\w:.-]{0,200}(?![\w:.-]))
        [^<>"']*(?:(?:"[^"]*"|'[^']*')[^<>"']*){0,200}(?P<empty>(?<=/))?>
    )
    | &(?P<entity>\#\d{1,7}|\#x[0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos|nbsp);""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s+")
_SUBSET_END = re.compile(r"\]\s*>")
_INLINE = frozenset(
    """a abbr abbrev acronym anchor application b bold br button citation citetitle cite classname
    cmdname code codeph command constant data del dfn em emphasis envar errorname ext-link
    filename filepath firstterm foreignphrase function guibutton guiicon guilabel guimenu
    guimenuitem guisubmenu hi hostname i indexterm inline ins interfacename italic keycap keycode
    keycombo kbd link literal mark markup menucascade menuchoice methodname monospace named-
    content olink option package parameter ph phrase productname productnumber prompt property q
    quote ref remark replaceable replacement returnvalue s samp sc shortcut small span strike
    strong structfield structname styled-content sub subscript sup superscript symbol systemitem
    token trademark tt type u uicontrol ulink underline uri userinput var varname wordasword xref
    """.split()
)
_HEADINGS = frozenset("title head heading h1 h2 h3 h4 h5 h6 bridgehead refname titre".split())
_CODE = frozenset(
    """programlisting screen literallayout synopsis codeblock listing pre verbatim screenco
    programlistingco cmdsynopsis funcsynopsis source-code sourcecode disp-formula math""".split()
)
_SKIPPED = frozenset("script style svg path indexterm tgroup-spec metadata-raw".split())
_ROWS = frozenset(("tr", "row", "strow", "sthead"))
_CELLS = frozenset(("td", "th", "entry", "stentry", "cell"))
_TABLES = frozenset(("table", "informaltable", "tgroup", "simpletable"))
_TEXT_ELEMENTS = frozenset(
    """p para simpara formalpara li item listitem note tip warning caution important dd dt term
    definition abstract summary description desc quote blockquote caption text seg s l body content
    subtitle answer question""".split()
)
"""Elements whose text is shown without their names, however short it is."""
_MAX_VALUE_WORDS = 6
_MAX_NAME_CHARACTERS = 100
_MAX_DEPTH = 200  # deeper elements are read, but their names are not remembered


def read_xml(source: str) -> Content:
    """Text, blocks and title, which is the first title in it."""
    page = _Page()
    position = 0
    skip_until = 0
    for token in _TOKEN.finditer(source):
        if token.start() < skip_until:
            continue
        page.add_text(source, position, token.start())
        position = token.end()
        if token["subset"]:  # the declarations in a document type
            end = _SUBSET_END.search(source, token.end())
            position = skip_until = end.end() if end else len(source)
        elif token["cdata"] is not None:
            page.add_text(source, *token.span("cdata"))
        elif token["entity"]:
            page.add_piece(unescape(token[0]), *token.span())
        elif token["name"]:
            page.add_tag(token)
    page.add_text(source, position, len(source))
    page.finish()
    builder = page.builder
    return Content(
        builder.text(), page.blocks, "line", line_starts(source), page.title, builder.segments
    )


class _Page:
    """The state while a file is read. A block is written when it is complete."""

    def __init__(self) -> None:
        self.builder = TextBuilder()
        self.blocks = Blocks()
        self.title = ""
        self._pieces: list[Piece] = []
        self._words = 0
        self._after_space = True
        self._open: list[str] = []
        self._too_deep = 0
        self._leaf: Piece | None = None
        """The name of the last element that was opened, if no other was opened or closed since."""
        self._waiting: tuple[Piece, list[Piece], int] | None = None
        """The name that an element starts with, until it is known whether it goes on: the tag, the
        value, and the depth of the element."""
        self._named: list[int] = []  # the depths of the open elements that have a heading
        self._has_children: list[bool] = []  # of each open element
        self._is_first = False  # whether the last element that was opened is the first in its own
        self._code_depth = 0
        self._skipped = ""
        self._skip_depth = 0
        self._heading_depth = 0
        self._row_cells = 0
        self._table_rows = 0
        self._row_block = -1  # the first block of the row
        self._in_header = False
        self._is_header = True  # whether the row has only header cells

    def add_text(self, source: str, start: int, end: int) -> None:
        """Text between tags; white space is collapsed except in code."""
        if start >= end or self._skipped:
            return
        if self._code_depth:
            self._append(source[start:end], start, end)
            return
        position = start
        for space in _SPACE.finditer(source, start, end):
            self._append(source[position : space.start()], position, space.start())
            if not self._after_space:
                self._append(" ", *space.span())
                self._after_space = True
            position = space.end()
        self._append(source[position:end], position, end)

    def add_piece(self, text: str, start: int, end: int) -> None:
        """The character of an entity."""
        if not self._skipped:
            self._append(text, start, end)

    def _append(self, text: str, start: int, end: int) -> None:
        if text:
            self._pieces.append((text, start, end))
            self._words += not text.isspace()
            self._after_space = text.isspace()

    def add_tag(self, token: re.Match[str]) -> None:
        """An opening or closing tag."""
        qualified = token["name"]
        name = qualified.rpartition(":")[2].lower()
        closes, is_empty = bool(token["close"]), token["empty"] is not None
        if self._skipped:
            if name == self._skipped and not is_empty:
                self._skip_depth += -1 if closes else 1
                self._skipped = name if self._skip_depth else ""
        elif name in _SKIPPED and not closes:
            if not is_empty:
                self._skipped, self._skip_depth = name, 1
        elif self._is_inline(name):
            if name == "br" and not closes:
                self._append("\n", *token.span())
        elif closes:
            self._close(name)
        else:
            self.end_block()
            if not is_empty:
                self._open_element(name, token)

    def _is_inline(self, name: str) -> bool:
        """Whether an element stands inside a sentence; in code, all do except the end of it."""
        if self._code_depth:
            return name not in _CODE
        return name in _INLINE and bool(self._open)

    def _open_element(self, name: str, token: re.Match[str]) -> None:
        self._is_first = bool(self._open) and not self._has_children[-1]
        if self._open:
            self._has_children[-1] = True
        if len(self._open) < _MAX_DEPTH:
            self._open.append(name)
            self._has_children.append(False)
        else:
            self._too_deep += 1
        last = token.end("name")
        local = token["name"].rpartition(":")[2]
        self._leaf = (local, last - len(local), last) if name not in _TEXT_ELEMENTS else None
        if name in _CODE:
            self._code_depth += 1
        elif name in _HEADINGS:
            self._heading_depth = 1
        elif name in _ROWS:
            self._row_cells = 0
            self._is_header = True
        elif name in _CELLS:
            self._is_header = self._is_header and name == "th"
        elif name in _TABLES:
            self._table_rows = 0
            self._in_header = False
        elif name == "thead":
            self._in_header = True

    def _close(self, name: str) -> None:
        self.end_block()
        self._leaf = None
        if self._too_deep:
            self._too_deep -= 1
        elif self._open:
            self._open.pop()
            self._has_children.pop()
            self._end_section(len(self._open))
        if name in _CODE:
            self._code_depth = max(self._code_depth - 1, 0)
        elif name in _HEADINGS:
            self._heading_depth = 0
        elif name == "thead":
            self._in_header = False
        elif name in _ROWS and self._row_cells:
            if not self._table_rows and (self._in_header or self._is_header):
                self.blocks.mark_header(self._row_block)
            self._table_rows += 1
            self._row_cells = 0

    def finish(self) -> None:
        """Write what is left at the end of the file."""
        self.end_block()
        self._end_waiting(is_heading=False)

    def end_block(self) -> None:
        """Write the text since the last block."""
        pieces, self._pieces = self._pieces, []
        words, self._words, self._after_space = self._words, 0, True
        leaf, self._leaf = self._leaf, None
        if not words:
            return
        kind = self._kind()
        is_value = kind == "text" and leaf is not None and words <= _MAX_VALUE_WORDS
        if leaf is None or not (is_value and _is_value(pieces)):
            self._end_waiting(is_heading=True)
            self._write(pieces, kind)
        elif leaf[0].lower() == "name" and self._is_first and _is_name(pieces):
            self._end_waiting(is_heading=True)
            self._waiting = leaf, pieces, len(self._open) - 1
        else:
            self._end_waiting(is_heading=True)
            self._write(pieces, kind, leaf)

    def _end_waiting(self, *, is_heading: bool) -> None:
        """Write the name that an element starts with: a heading if the element goes on."""
        if self._waiting is not None:
            leaf, pieces, depth = self._waiting
            self._waiting = None
            if is_heading:
                self._named.append(depth)
                self._write(pieces, "heading", level=depth)
            else:
                self._write(pieces, "text", leaf)

    def _end_section(self, depth: int) -> None:
        """Handle the end of an element with this many around it: its heading ends with it."""
        if self._waiting is not None and self._waiting[2] > depth:
            self._end_waiting(is_heading=False)
        if self._named and self._named[-1] > depth:
            level = self._named.pop()
            end = self.builder.length
            self.blocks.add(end - 1, end, "heading", level)  # without letters: it has no name

    def _write(
        self, pieces: list[Piece], kind: BlockKind, leaf: Piece | None = None, level: int = 0
    ) -> None:
        start = self.builder.length
        if leaf is not None:
            self.builder.add(*leaf)
            self.builder.insert(": ", leaf[2])
        first = 0
        if not self._code_depth:
            while pieces[first][0].isspace():
                first += 1
        for piece in pieces[first:]:
            self.builder.add(*piece)
        if kind == "heading" and not self.title:
            self.title = " ".join("".join(text for text, _, _ in pieces).split())
        if kind in ("row", "table"):
            self._row_block = len(self.blocks)
        if kind == "heading" and not level:
            level = self._heading_level()
        self.blocks.add(start, self.builder.length, kind, level)
        self._row_cells += kind in ("cell", "row", "table")
        self.builder.insert("\n", pieces[-1][2])

    def _heading_level(self) -> int:
        """By the number of the heading, or else by the sections around it."""
        name = self._open[-1] if self._open else ""
        if name[:1] == "h" and name[1:].isdecimal():
            return int(name[1:])
        return max(len(self._open) - 1, 1)

    def _kind(self) -> BlockKind:
        if self._code_depth:
            return "code"
        if self._heading_depth:
            return "heading"
        if any(name in _CELLS for name in self._open[-3:]):
            if self._row_cells:
                return "cell"
            return "row" if self._table_rows else "table"
        return "text"


def _is_name(pieces: list[Piece]) -> bool:
    return sum(len(text) for text, _, _ in pieces) <= _MAX_NAME_CHARACTERS


def _is_value(pieces: list[Piece]) -> bool:
    """Whether a text is a value and no sentence."""
    text = "".join(text for text, _, _ in pieces).rstrip()
    return len(text) < 200 and text[-1:] not in ".!?:…"
