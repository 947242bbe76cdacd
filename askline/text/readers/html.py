"""
Html to text, with the way back to every character of the source.

One regular expression cuts the source into tags, entities, runs of white space and text; broken
markup never fails, and what cannot be a tag is text. White space is put together as a browser does,
except in `<pre>`. Scripts, styles, templates, comments and drawings are left out. The slice of the
source for a sentence holds the tags that stand inside it.
"""

from __future__ import annotations

import re
from html import unescape

from .document import BlockKind, Blocks, Content
from .offsets import TextBuilder, line_starts

__all__ = [
    "read_html",
]

# Each alternative consumes what it looks at, or gives up at the next `<`, which keeps the time
# linear; the set of characters has to come first, for then `re` skips over everything else.
_ATTRIBUTES = r"""[^<>"']* (?: (?: "[^"]*" | '[^']*' ) [^<>"']* )*"""
_TOKEN = re.compile(
    rf"""[<& \t\n\r\f] (?:
      (?<=<) (?:
        !-- (?: -?> | .*? (?: --!?> | \Z ) )
      | [!?] [^<>]* >
      | (?P<raw> script | style | textarea | title | xmp | iframe | noembed | noframes ) \b
            {_ATTRIBUTES} > (?P<body> .*? ) (?: </(?P=raw)\b [^<>]* > | \Z )
      | (?P<close> /? ) (?P<name> [a-z][\w:.-]* ) (?![\w:.-]) (?: {_ATTRIBUTES} | [^<>]* ) >
      )
    | (?<=&) (?P<entity> \#\d{{1,7}} | \#x[0-9a-f]{{1,6}} | [a-z][a-z0-9]{{1,31}} ) ;?
    | (?<=[ \t\n\r\f]) (?P<space> [ \t\n\r\f]+ )
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_SPACES = str.maketrans("\t\n\r\f", "    ")
_SKIPPED = frozenset("template noscript svg select object canvas audio video datalist".split())
_BLOCKS = frozenset(
    """address article aside blockquote body caption center col colgroup dd details dialog dir div
    dl dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr
    html legend li link main menu meta nav ol optgroup option p pre search section summary table
    tbody td tfoot th thead tr ul""".split()
)
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


def read_html(source: str) -> Content:
    """Text, blocks and title of a page or a fragment."""
    page = _Page()
    position = 0
    for token in _TOKEN.finditer(source):
        page.data(source[position : token.start()], position)
        page.token(token)
        position = token.end()
    page.data(source[position:], position)
    page.end_block(len(source))
    builder = page.builder
    starts = line_starts(source)
    return Content(builder.text(), page.blocks, "line", starts, page.title, builder.segments)


class _Table:
    """How far an open table has come."""

    def __init__(self) -> None:
        self.in_cell = False
        self._is_first = True  # the row at hand
        self._names_columns = True  # it does, as far as it has come
        self._begins = -1  # the block that the row begins with

    def kind(self, block: int) -> BlockKind:
        """Of the next block of the cell at hand."""
        if self._begins >= 0:
            return "cell"
        self._begins = block
        return "table" if self._is_first else "row"

    def enter(self, name: str, closes: bool, blocks: Blocks) -> None:
        """Past a tag of a row or a cell."""
        self.in_cell = name != "tr" and not closes
        if name == "td":
            self._names_columns = False
        elif name == "tr":
            self.end_row(blocks)

    def end_row(self, blocks: Blocks) -> None:
        """What comes next begins another; a first one of nothing but `th` names the columns."""
        if self._begins >= 0:
            if self._is_first and self._names_columns:
                blocks.name_columns(self._begins)
            self._is_first = False
        self._names_columns = True
        self._begins = -1


class _Page:
    """What is open while a page is read."""

    def __init__(self) -> None:
        self.builder = TextBuilder()
        self.blocks = Blocks()
        self.title = ""
        self._start = 0  # of the block at hand
        self._end = 0  # of the block at hand, without the space it may end in
        self._after_space = True
        self._kind: BlockKind = "text"
        self._tables: list[_Table] = []
        self._preformatted = False
        self._skipped = ""  # the element that is left out, and how deep we are in it
        self._depth = 0

    def data(self, text: str, at: int) -> None:
        if not text or self._skipped:
            return
        if not self._preformatted:
            shown = text.translate(_SPACES)
            if self._after_space and shown[0] == " ":
                shown, at = shown[1:], at + 1
            if not shown:
                return
            text = shown
        self.builder.add(text, at, at + len(text))
        self._note(text)

    def token(self, token: re.Match[str]) -> None:
        kind = token.lastgroup
        if kind == "entity":
            self._piece(unescape(token[0]), *token.span())
        elif kind == "space":
            self._space(token)
        elif kind == "body" and token["raw"].lower() == "title":
            if not self._skipped:
                self.title = self.title or " ".join(unescape(token["body"]).split())
        elif kind == "name":
            self._tag(token)

    def end_block(self, at: int) -> None:
        """Whatever comes next belongs to another block."""
        if self._end > self._start:
            self.blocks.add(self._start, self._end, self._block_kind())
            self.builder.gap("\n", at)
        self._start = self._end = self.builder.length
        self._after_space = True

    def _block_kind(self) -> BlockKind:
        if self._preformatted:
            return "code"
        if self._kind == "text" and self._tables and self._tables[-1].in_cell:
            return self._tables[-1].kind(len(self.blocks))
        return self._kind

    def _piece(self, text: str, start: int, end: int) -> None:
        text = text.replace("\xad", "")  # a soft hyphen would cut the word in two
        if text and not self._skipped:
            self.builder.add(text, start, end)
            self._note(text)

    def _space(self, token: re.Match[str]) -> None:
        if self._preformatted:
            self._piece(token[0], *token.span())
        elif not self._after_space:
            self._piece(" ", *token.span())

    def _note(self, text: str) -> None:
        """Keep the edges of the block: it starts and ends with a character one can see."""
        shown = text.rstrip()
        if shown:
            if self._start == self._end:
                self._start = self.builder.length - len(text.lstrip())
            self._end = self.builder.length - len(text) + len(shown)
        self._after_space = text[-1].isspace() and text[-1] != "\xa0"

    def _tag(self, token: re.Match[str]) -> None:
        name, closes = token["name"].lower(), bool(token["close"])
        if self._skipped:
            if name == self._skipped:
                self._depth += -1 if closes else 1
                self._skipped = name if self._depth else ""
        elif name in _SKIPPED and not closes:
            if not (name == "svg" and token[0].endswith("/>")):
                self._skipped, self._depth = name, 1
        elif name == "br":
            self.builder.gap("\n", token.start())
            self._after_space = True
        elif name in _BLOCKS:
            self.end_block(token.start())
            self._enter(name, closes)

    def _enter(self, name: str, closes: bool) -> None:
        if name in _HEADINGS and not closes:
            self._kind = "heading"
        else:
            self._kind = "text"  # any block ends a heading, closed or not
        if name == "pre":
            self._preformatted = not closes
        elif name == "table":
            for table in self._tables[-1:]:  # one inside another cuts the other's row in two
                table.end_row(self.blocks)
            if closes:
                del self._tables[-1:]
            else:
                self._tables.append(_Table())
        elif name in ("td", "th", "tr"):
            for table in self._tables[-1:]:
                table.enter(name, closes, self.blocks)
