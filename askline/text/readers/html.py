"""
Read HTML with exact offsets back into the source.

One regular expression cuts the source into tags and text, another finds entities in the text.
Broken markup never fails: what cannot be a tag is text. White space is collapsed as in a browser,
except in `<pre>`. Several lines in a typewriter font, or that end with `;`, are code. Scripts,
styles, templates, comments, drawings and the furniture of the page are left out, and so are blocks
of nothing but links into the site. A term is one block with its meaning. The slice of the source
for a sentence includes the tags inside it.
"""

from __future__ import annotations

import re
from functools import cache
from html import unescape

from .document import Blocks, Content
from .html_furniture import FURNITURE_ELEMENTS, is_furniture, is_furniture_text
from .kinds import QUESTION_LEVEL, BlockKind
from .offsets import TextBuilder, line_starts
from .plain_text import add_lines

__all__ = [
    "read_html",
]

# Each alternative consumes what it matches or fails at the next `<` that is not in quotes. Of four
# tags, each inside the quotes of the ones before, the last is always outside those of one of them,
# so no character is read more than a few times: the time is linear. `re` keeps every repetition of
# a group in memory, so their number is limited: a tag with more quoted values ends at its first
# `>`, even inside quotes.
# The pattern starts with one character and not a set, because `re` then skips all others quickly.
_ATTRIBUTES = r"""[^<>"']* (?: (?: "[^"]*" | '[^']*' ) [^<>"']* ){0,200}"""
_TOKEN = re.compile(
    rf"""< (?:
        !-- (?: -?> | .*? (?: --!?> | \Z ) )
      | [!?] [^<>]* >
      | (?=[stxin]) (?P<raw> script|style|textarea|title|xmp|iframe|noembed|noframes ) \b
            {_ATTRIBUTES} > (?P<body> .*? ) (?: </(?P=raw)\b [^<>]* > | \Z )
      | (?P<close> /? ) (?P<name> [a-z][\w:.-]* ) (?![\w:.-]) (?: {_ATTRIBUTES} | [^<>]* ) >
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});?", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\n\r\f]{2,}")
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
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
_LINK, _BOLD, _CODE = 1, 2, 4
_INLINE = {"a": _LINK, "b": _BOLD, "strong": _BOLD, "tt": _CODE, "code": _CODE, "samp": _CODE}
_ALL_INLINE = _LINK | _BOLD | _CODE
_CAPTION = re.compile(r"(?:table|figure|fig\.|example|listing|equation)\s*[\dA-Z]", re.IGNORECASE)
_ADMONITIONS = frozenset("note tip warning caution important danger attention hint info".split())
_LETTER = re.compile(r"[^\W_]")
_SHORT_CHARACTERS = 100
_MAX_BOLD_CHARACTERS = 200  # of a line in bold type that is a heading
_STATEMENT_ENDS = frozenset(";{}")
_SENTENCE_ENDS = (".", "!", ",", ";", ":", "…", "")
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


def read_html(source: str) -> Content:
    """Text, blocks and title of a page or a fragment."""
    page = _read_page(source, keep_furniture=False)
    if page.in_furniture or not page.blocks:
        # An element is not closed, or the names of its classes mean something else on this site.
        page = _read_page(source, keep_furniture=True)
    text, blocks = page.builder.text(), page.blocks
    if page.has_breaks:
        blocks = Blocks()
        for start, end, kind, level in page.blocks:
            if kind == "text":
                add_lines(blocks, text, start, end)
            else:
                blocks.add(start, end, kind, level)
    return Content(text, blocks, "line", line_starts(source), page.title, page.builder.segments)


def _read_page(source: str, *, keep_furniture: bool) -> _Page:
    page = _Page(source, keep_furniture)
    position = -1
    while position < page.position:
        position = page.position
        for token in _TOKEN.finditer(source, position):
            start, end = token.span()
            if start > position:
                page.add_text(source[position:start], position)
            kind = token.lastgroup
            if kind == "name":
                page.add_tag(token)
            elif kind == "body":
                page.add_element(token)
            position = end
            if page.position > position:  # behind an element that is not read
                break
        else:
            break
    page.add_text(source[position:], position)
    page.end_block(len(source))
    return page


@cache
def _element_tags(name: str) -> re.Pattern[str]:
    """Matches the tags of one element; and comments and scripts, which may contain some."""
    return re.compile(
        rf"<(?:!--.*?(?:-->|\Z)|(script|style|textarea)\b.*?(?:</\1|\Z)|(?P<close>/?){name}\b)",
        re.IGNORECASE | re.DOTALL,
    )


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
        self.only_links = True  # into the site, in the current row so far
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
        """
        Close the current row; a first row of `th` cells only is marked as the header.

        A row of nothing but links belongs to an index or to the navigation, and is left out.
        """
        if self._first_block >= 0:
            if self.only_links:
                blocks.truncate(self._first_block)
            elif self._is_first_row and self._only_header_cells:
                blocks.mark_header(self._first_block)
            self._is_first_row = False
        self._only_header_cells = True
        self.only_links = True
        self._first_block = -1


class _Page:
    """The state while a page is read."""

    def __init__(self, source: str, keep_furniture: bool) -> None:
        self.builder = TextBuilder()
        self.blocks = Blocks()
        self.title = ""
        self.in_furniture = False  # whether furniture is open at the end of the page
        self.position = 0  # behind the last element that was skipped
        self._source = source
        self._keep_furniture = keep_furniture
        self._start = 0  # of the current block
        self._end = 0  # of the current block, without trailing white space
        self._after_space = True
        self._kind: BlockKind = "text"
        self._level = 0  # of a heading
        self._list_depth = 0
        self._tables: list[_Table] = []
        self._preformatted = False
        self._term_end = 0  # where the term ends in the text
        self._term = ""  # "term" in a term and behind it, "meaning" before the text of its meaning
        self._short_text = ""  # of the current block; its first characters if it is long
        self._short_outside = ""  # the same without links into the site
        self._inside = 0  # which of _LINK, _BOLD and _CODE are open
        self._outside = 0  # in which of them not all words of the block are
        self._links = False  # whether the block has links
        self.has_breaks = False  # line breaks inside blocks
        self._breaks = 0  # line breaks of the block
        self._statements = 0  # lines before them that end like one of a program
        self._last = ""  # the last visible character

    def add_text(self, text: str, at: int) -> None:
        """Handle the text between two tokens, which starts at `at` in the source."""
        if "&" not in text:
            self._add_plain_text(text, at)
            return
        position = 0
        for entity in _ENTITY.finditer(text):
            start, end = entity.span()
            self._add_plain_text(text[position:start], at + position)
            self._add_piece(unescape(entity[0]), at + start, at + end)
            position = end
        self._add_plain_text(text[position:], at + position)

    def _add_plain_text(self, text: str, at: int) -> None:
        """Handle text without entities."""
        if not text:
            return
        if self._preformatted:
            self.builder.add(text, at, at + len(text))
            self._update_bounds(text)
            return
        # Faster than a pattern, and than translating all texts.
        if "\n" in text or "\t" in text or "\r" in text or "\f" in text:
            text = text.translate(_TO_SPACES)
        if "  " not in text:
            self._add_words(text, at)
            return
        position = 0
        for run in _SPACES.finditer(text):
            self._add_words(text[position : run.start()], at + position)
            position = run.end()
            if not self._after_space:
                self._add_piece(" ", at + run.start(), at + position)
        self._add_words(text[position:], at + position)

    def _add_words(self, text: str, at: int) -> None:
        """Handle text with single spaces."""
        if self._after_space and text[:1] == " ":
            text, at = text[1:], at + 1
        if text:
            self.builder.add(text, at, at + len(text))
            self._update_bounds(text)

    def add_element(self, token: re.Match[str]) -> None:
        """Handle an element without markup inside."""
        if token["raw"].lower() == "title":
            self.title = self.title or _plain_title(token["body"])

    def end_block(self, at: int) -> None:
        """Close the current block at `at` in the source."""
        if self._end > self._start:
            if not self._is_furniture_block():
                self.blocks.add(self._start, self._end, *self._block_kind())
            self.builder.insert("\n", at)
        self._start = self._end = self.builder.length
        self._after_space = True
        self._short_text = self._short_outside = ""
        self._outside = 0
        self._links = bool(self._inside & _LINK)
        self._breaks = self._statements = 0
        self._last = ""
        self._term = ""

    def _block_kind(self) -> tuple[BlockKind, int]:
        """The kind and the level of the current block."""
        is_program = self._statements and 2 * self._statements >= self._breaks
        if self._preformatted or is_program or (self._breaks and not self._outside & _CODE):
            return "code", 0
        if self._kind == "heading":
            return "heading", self._level
        if self._tables and self._tables[-1].in_cell:
            return self._tables[-1].next_kind(len(self.blocks)), 0
        if self._end - self._start <= _MAX_BOLD_CHARACTERS:
            last = self._short_text[-1:] if len(self._short_text) < _SHORT_CHARACTERS else ""
            is_bold = not (self._outside & _BOLD or self._list_depth or self._links)
            is_bold = (
                is_bold and last not in _SENTENCE_ENDS and not _CAPTION.match(self._short_text)
            )
            if is_bold or (last == "?" and (self._term == "term" or self._kind == "item")):
                return "heading", QUESTION_LEVEL
        return ("item", self._list_depth) if self._list_depth else ("text", 0)

    def _is_furniture_block(self) -> bool:
        """
        Whether the current block has only links into the site, or is a label of the page.

        The heading of an admonition is left out, because the section goes on behind it.
        """
        if self._preformatted or self._keep_furniture:
            return False
        if self._kind == "heading":
            return self._short_text.lower() in _ADMONITIONS
        only_links = self._links and not self._outside & _LINK
        if self._tables and self._tables[-1].in_cell:
            self._tables[-1].only_links &= only_links
            return only_links and bool(self._list_depth)
        if only_links or len(self._short_text) < 2:  # one letter is that of an index
            return True
        if len(self._short_text) >= _SHORT_CHARACTERS:
            return False
        label = self._short_text.rstrip(":").lower()
        return label in _ADMONITIONS or is_furniture_text(self._short_outside)

    def _add_piece(self, text: str, start: int, end: int) -> None:
        text = text.replace("\xad", "")  # a soft hyphen would split the word
        if text:
            self.builder.add(text, start, end)
            self._update_bounds(text)

    def _update_bounds(self, text: str) -> None:
        """Update the bounds of the block, which starts and ends with a visible character."""
        visible = text.rstrip()
        if visible:
            if self._start == self._end:
                self._start = self.builder.length - len(text.lstrip())
            self._end = self.builder.length - len(text) + len(visible)
            self._last = visible[-1]
            outside = _ALL_INLINE & ~self._inside
            if outside & ~self._outside and _LETTER.search(visible):
                self._outside |= outside
            if len(self._short_text) < _SHORT_CHARACTERS:
                self._short_text = (self._short_text + text).strip()
                if outside & _LINK:
                    self._short_outside += text
        self._after_space = text[-1].isspace() and text[-1] != "\xa0"

    def add_tag(self, token: re.Match[str]) -> None:
        """Handle a tag."""
        close, name = token.group("close", "name")
        closes, name = bool(close), name.lower()
        if name in _SKIPPED_ELEMENTS and not closes:
            if not (name == "svg" and token[0].endswith("/>")):
                self._skip(name, token.end())
        elif (
            not closes
            and name in FURNITURE_ELEMENTS
            and not self._keep_furniture
            and not token[0].endswith("/>")  # of XHTML: it has no content
            and is_furniture(name, token[0], self._source, token.end())
        ):
            if name in _BLOCK_ELEMENTS:
                self.end_block(token.start())
            self.in_furniture = not self._skip(name, token.end())
        elif name == "br":
            self.builder.insert("\n", token.start())
            self._after_space = True
            self.has_breaks = True
            self._breaks += 1
            self._statements += self._last in _STATEMENT_ENDS
            self._short_text += " " if self._short_text else ""
        elif name in _BLOCK_ELEMENTS:
            if not (self._term and self._continue_term(name, closes, token)):
                self.end_block(token.start())
                self._start_block(name, closes)
                if name == "hr":
                    self._end_label()
        elif name in _INLINE:
            self._set_inside(_INLINE[name], closes, token[0])

    def _end_label(self) -> None:
        """A rule ends the section of a label: a heading without letters has no name."""
        if self.builder.length:
            end = self.builder.length
            self.blocks.add(end - 1, end, "heading", QUESTION_LEVEL)

    def _skip(self, name: str, start: int) -> bool:
        """Move behind the element that is open at `start`; False if it is not closed."""
        depth = 1
        for found in _element_tags(name).finditer(self._source, start):
            if found["close"] is not None:
                depth += -1 if found["close"] else 1
                if depth == 0:
                    end = self._source.find(">", found.end())
                    self.position = end + 1 if end >= 0 else len(self._source)
                    return True
        self.position = len(self._source)
        return False

    def _set_inside(self, kind: int, closes: bool, tag: str) -> None:
        """Note where a link into the site, bold type, or a typewriter font starts or ends."""
        if closes:
            self._inside &= ~kind
        elif kind != _LINK:
            self._inside |= kind
        elif "href" in tag.lower() and "://" not in tag and "mailto:" not in tag:
            self._inside |= _LINK
            self._links = True

    def _continue_term(self, name: str, closes: bool, token: re.Match[str]) -> bool:
        """
        Join a term with its meaning: `term, term: meaning`. True if the block goes on.

        A term that ends with a question mark is a heading, so its block ends.
        """
        if self._end == self._start:
            return False
        if self._term == "meaning":
            return name == "p" and not closes and self._end == self._term_end
        if name == "dt" and closes:
            return True
        if name in ("dt", "dd") and not closes and self._short_text[-1:] != "?":
            separator = ", " if name == "dt" else ": "
            if self._short_text.endswith((":", ",")):
                separator = " "
            self.builder.insert(separator, token.start())
            self._after_space = True
            self._term = "term" if name == "dt" else "meaning"
            self._term_end = self._end
            self._outside = _ALL_INLINE
            return True
        return False

    def _start_block(self, name: str, closes: bool) -> None:
        if name in _HEADINGS and not closes:
            self._kind, self._level = "heading", int(name[1])
        else:
            self._kind = "text"  # any block element ends a heading, even if it was not closed
        if name == "pre":
            self._preformatted = not closes
        elif name == "dt" and not closes:
            self._term = "term"
        elif name == "summary" and not closes:
            self._kind = "item"
        elif name in _LISTS:
            self._list_depth = max(self._list_depth + (-1 if closes else 1), 0)
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
