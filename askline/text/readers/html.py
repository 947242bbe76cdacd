"""
Read HTML with exact offsets back into the source.

One regular expression cuts the source into tags, entities, white space and text. Broken markup
never fails: what cannot be a tag is text. White space is collapsed as in a browser, except in
`<pre>`. Scripts, styles, templates, comments and drawings are left out. The slice of the source for
a sentence includes the tags inside it.
"""

from __future__ import annotations

import re
from html import unescape

from .document import BlockKind, Blocks, Content
from .offsets import TextBuilder, line_starts

__all__ = [
    "read_html",
]

# Each alternative consumes what it matches or fails at the next `<` that is not in quotes. Of four
# tags, each inside the quotes of the ones before, the last is always outside those of one of them,
# so no character is read more than a few times: the time is linear. `re` keeps every repetition of
# a group in memory, so their number is limited: a tag with more quoted values ends at its first
# `>`, even inside quotes.
# The pattern starts with a character set, because `re` then skips all other characters quickly.
_ATTRIBUTES = r"""[^<>"']* (?: (?: "[^"]*" | '[^']*' ) [^<>"']* ){0,200}"""
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
_TO_SPACES = str.maketrans("\t\n\r\f", "    ")
_SKIPPED_ELEMENTS = frozenset(
    "template noscript svg select object canvas audio video datalist".split()
)
_BLOCK_ELEMENTS = frozenset(
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
        page.add_text(source[position : token.start()], position)
        page.add_token(token)
        position = token.end()
    page.add_text(source[position:], position)
    page.end_block(len(source))
    builder = page.builder
    starts = line_starts(source)
    return Content(builder.text(), page.blocks, "line", starts, page.title, builder.segments)


def _plain_title(body: str) -> str:
    try:
        text = unescape(body)
    except ValueError:  # a character number of thousands of digits
        text = body
    return " ".join(text.split())


class _Table:
    """The state of an open table."""

    def __init__(self) -> None:
        self.in_cell = False
        self._is_first_row = True
        self._only_header_cells = True  # in the current row so far
        self._first_block = -1  # the block that the current row starts with

    def next_kind(self, block: int) -> BlockKind:
        """The kind of the next block in the current cell."""
        if self._first_block >= 0:
            return "cell"
        self._first_block = block
        return "table" if self._is_first_row else "row"

    def handle_tag(self, name: str, closes: bool, blocks: Blocks) -> None:
        """Handle a tag of a row or a cell."""
        self.in_cell = name != "tr" and not closes
        if name == "td":
            self._only_header_cells = False
        elif name == "tr":
            self.end_row(blocks)

    def end_row(self, blocks: Blocks) -> None:
        """Close the current row; a first row of `th` cells only is marked as the header."""
        if self._first_block >= 0:
            if self._is_first_row and self._only_header_cells:
                blocks.mark_header(self._first_block)
            self._is_first_row = False
        self._only_header_cells = True
        self._first_block = -1


class _Page:
    """The state while a page is read."""

    def __init__(self) -> None:
        self.builder = TextBuilder()
        self.blocks = Blocks()
        self.title = ""
        self._start = 0  # of the current block
        self._end = 0  # of the current block, without trailing white space
        self._after_space = True
        self._kind: BlockKind = "text"
        self._level = 0  # of a heading
        self._tables: list[_Table] = []
        self._preformatted = False
        self._skipped = ""  # the element that is being skipped
        self._skip_depth = 0  # its nesting depth

    def add_text(self, text: str, at: int) -> None:
        """Handle the text between two tokens, which starts at `at` in the source."""
        if not text or self._skipped:
            return
        if not self._preformatted:
            visible = text.translate(_TO_SPACES)
            if self._after_space and visible[0] == " ":
                visible, at = visible[1:], at + 1
            if not visible:
                return
            text = visible
        self.builder.add(text, at, at + len(text))
        self._update_bounds(text)

    def add_token(self, token: re.Match[str]) -> None:
        """Handle a tag, an entity, a comment or a run of white space."""
        kind = token.lastgroup
        if kind == "entity":
            self._add_piece(unescape(token[0]), *token.span())
        elif kind == "space":
            self._add_space(token)
        elif kind == "body" and token["raw"].lower() == "title":
            if not self._skipped:
                self.title = self.title or _plain_title(token["body"])
        elif kind == "name":
            self._add_tag(token)

    def end_block(self, at: int) -> None:
        """Close the current block at `at` in the source."""
        if self._end > self._start:
            kind = self._block_kind()
            self.blocks.add(self._start, self._end, kind, self._level if kind == "heading" else 0)
            self.builder.insert("\n", at)
        self._start = self._end = self.builder.length
        self._after_space = True

    def _block_kind(self) -> BlockKind:
        if self._preformatted:
            return "code"
        if self._kind == "text" and self._tables and self._tables[-1].in_cell:
            return self._tables[-1].next_kind(len(self.blocks))
        return self._kind

    def _add_piece(self, text: str, start: int, end: int) -> None:
        text = text.replace("\xad", "")  # a soft hyphen would split the word
        if text and not self._skipped:
            self.builder.add(text, start, end)
            self._update_bounds(text)

    def _add_space(self, token: re.Match[str]) -> None:
        if self._preformatted:
            self._add_piece(token[0], *token.span())
        elif not self._after_space:
            self._add_piece(" ", *token.span())

    def _update_bounds(self, text: str) -> None:
        """Update the bounds of the block, which starts and ends with a visible character."""
        visible = text.rstrip()
        if visible:
            if self._start == self._end:
                self._start = self.builder.length - len(text.lstrip())
            self._end = self.builder.length - len(text) + len(visible)
        self._after_space = text[-1].isspace() and text[-1] != "\xa0"

    def _add_tag(self, token: re.Match[str]) -> None:
        name, closes = token["name"].lower(), bool(token["close"])
        if self._skipped:
            if name == self._skipped:
                self._skip_depth += -1 if closes else 1
                self._skipped = name if self._skip_depth else ""
        elif name in _SKIPPED_ELEMENTS and not closes:
            if not (name == "svg" and token[0].endswith("/>")):
                self._skipped, self._skip_depth = name, 1
        elif name == "br":
            self.builder.insert("\n", token.start())
            self._after_space = True
        elif name in _BLOCK_ELEMENTS:
            self.end_block(token.start())
            self._start_block(name, closes)

    def _start_block(self, name: str, closes: bool) -> None:
        if name in _HEADINGS and not closes:
            self._kind, self._level = "heading", int(name[1])
        else:
            self._kind = "text"  # any block element ends a heading, even if it was not closed
        if name == "pre":
            self._preformatted = not closes
        elif name == "table":
            for table in self._tables[-1:]:  # a nested table splits the outer row in two
                table.end_row(self.blocks)
            if closes:
                del self._tables[-1:]
            else:
                self._tables.append(_Table())
        elif name in ("td", "th", "tr"):
            for table in self._tables[-1:]:
                table.handle_tag(name, closes, self.blocks)
