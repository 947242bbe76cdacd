"""
Read Org files with exact offsets back into the source.

Headings lose their keywords and tags. A term and its description are one block. Source and example
blocks are code. Properties, log books, planning lines, keywords, comments and exported raw markup
are left out; the text of any other drawer is read, as it is in Org's own export.
"""

from __future__ import annotations

import re

from .document import Content
from .kinds import BlockKind
from .markup import LineSpan, MarkupWriter, Replacement, SourceLines, paired_marks

__all__ = [
    "read_org",
]

_HEADING = re.compile(
    r"\*+[ \t]+(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED|CANCELED|STARTED|COMMENT)[ \t]+)?"
    r"(?:\[#\w\][ \t]+)?"
)
_HEADING_END = re.compile(r"(?<![ \t])(?:[ \t]+\[\d*(?:/\d*|%)\])?(?:[ \t]+:[\w@#%:]+:)?[ \t]*\Z")
_BEGIN = re.compile(r"[ \t]*#\+begin_(?P<name>\w+)", re.IGNORECASE)
_END = re.compile(r"[ \t]*#\+end_\w+", re.IGNORECASE)
_KEYWORD = re.compile(r"[ \t]*#\+(?P<name>\w+)(?:\[[^\]]*\])?:[ \t]*")
_COMMENT = re.compile(r"[ \t]*#(?:[ \t]|\Z)")
_DRAWER = re.compile(r"[ \t]*:(?P<name>[\w-]+):[ \t]*\Z")
_FIXED_WIDTH = re.compile(r"[ \t]*:(?:[ \t]|\Z)")
_PLANNING = re.compile(r"[ \t]*(?:SCHEDULED|DEADLINE|CLOSED|CLOCK):[ \t]")
_ITEM = re.compile(
    r"(?:[ \t]*(?:[-+]|\d{1,4}[.)]|[a-zA-Z][.)])|[ \t]+\*)(?:[ \t]+|\Z)"
    r"(?:\[@\d+\][ \t]+)?(?:\[[ xX-]\][ \t]+)?"
)
_TERM = re.compile(r"(?P<term>\S.*?)(?<![ \t])[ \t]+::(?:[ \t]+|\Z)")
_TABLE = re.compile(r"[ \t]*\|")
_TABLE_RULE = re.compile(r"[ \t]*\|-[-+|]*[ \t]*\Z")
_CELL = re.compile(r"[^|]+")
_FOOTNOTE = re.compile(r"\[fn:[\w-]+\][ \t]*")
_CONTENTS_LINK = re.compile(r"\s*\[\[[#*][^\[\]]+\]\[[^\[\]]+\]\]\s*(?::[\w:]+:\s*)?")
_RULE = re.compile(r"[ \t]*-{5,}[ \t]*\Z")
_CODE_BLOCKS = frozenset(("src", "example", "verbatim", "latex"))
_DROPPED_BLOCKS = frozenset(("export", "comment", "html", "ascii"))
_DROPPED_DRAWERS = frozenset(("properties", "logbook", "clock"))

_TOKEN = re.compile(
    r"""\[\[(?P<target>[^\[\]]{1,1000})\](?:\[(?P<label>[^\[\]]{1,1000})\])?\]
    | (?P<gone>\[fn:[\w-]{0,60}(?::[^\[\]]{0,1000})?\] | <<<?[^<>\n]{1,200}>>>?
        | \u200b | @@\w{1,20}:[^@]{0,1000}@@ | \{\{\{[^{}()]{1,300}\}\}\} | \\\\(?=\s|\Z))
    | \{\{\{[\w-]{1,60}\((?P<arguments>[^{}()]{0,300})\)\}\}\}
    | <(?P<angle>(?:https?|mailto|file):[^<>\s]{1,1000}|\d{4}-\d\d-\d\d[^<>]{0,60})>
    | (?<![\w])src_\w{1,20}(?:\[[^\[\]]{0,100}\])?\{(?P<inline>[^{}]{1,500})\}
    | (?<![\w=~])(?P<fence>[=~])
        (?P<literal>(?:[^\s=~]|~(?=/))(?:(?:[^=~]|~(?=/)|(?<=\w)=(?=[\w~"'/-])){0,500}[^\s=~])?)
        (?P=fence)(?![\w=~])
    | (?<![\w`])`(?P<ticks>[^\s`'](?:[^`'\n]{0,100}[^\s`'])?)`(?![\w`])
    | (?<!`)(?P<mark>[*/_+=~])
    """,
    re.VERBOSE,
)
_MARKS = re.compile("[\\[<@{*/_+=~`\\\\\u200b]")
_BOLD_LINE = re.compile(r"\s*\*(?P<text>[^\s*].*\S)\*\s*")  # a command, as manual pages show it
_IMAGE = re.compile(r"(?:https?:|file:|[./])\S+\.(?:svg|png|gif|jpe?g|webp)\Z", re.IGNORECASE)
_PAGE_AND_SECTION = re.compile(r"[\w.:-]+(?P<comma>,)[ \t]*\d\w?\Z")
_TARGET_PREFIX = re.compile(r"(?:file:|id:|\*|#)+")


def read_org(source: str) -> Content:
    """Text, blocks and title, which is that of `#+title` or else the first heading."""
    reader = _OrgReader(source)
    reader.read()
    return reader.writer.content()


class _OrgReader:
    """Reads one block after the other; the content of text blocks is read like the rest."""

    def __init__(self, source: str) -> None:
        self.lines = SourceLines(source)
        self.writer = MarkupWriter(self.lines, _find_marks)
        self._at = 0  # the current line
        self._items: list[int] = []  # the indentation of the open list items

    def read(self) -> None:
        while self._at < len(self.lines):
            line = self.lines.text(self._at)
            if not line.strip():
                self._at += 1
            elif not (self._try_dropped(line) or self._try_block(line)):
                self._read_text(line)

    def _try_dropped(self, line: str) -> bool:
        """Move behind a line or a drawer that has no text."""
        keyword = _KEYWORD.match(line)
        drawer = _DRAWER.match(line)
        if keyword:
            if keyword["name"].lower() == "title":
                self.writer.title = self.writer.visible(line[keyword.end() :])
        elif drawer and drawer["name"].lower() in _DROPPED_DRAWERS:
            while (
                self._at < len(self.lines) and self.lines.text(self._at).strip().lower() != ":end:"
            ):
                self._at += 1
        elif not (
            drawer
            or _END.match(line)
            or _COMMENT.match(line)
            or _PLANNING.match(line)
            or _RULE.match(line)
        ):
            return False
        self._at += 1
        return True

    def _try_block(self, line: str) -> bool:
        heading = _HEADING.match(line)
        begin = _BEGIN.match(line)
        start = self.lines.starts[self._at]
        if heading:
            ending = _HEADING_END.search(line, heading.end())
            end = ending.start() if ending else len(line)
            self._items.clear()
            level = len(line) - len(line.lstrip("*"))
            self.writer.add([(start + heading.end(), start + end)], "heading", level)
            self._at += 1
        elif begin:
            self._read_delimited(begin["name"].lower())
        elif _FIXED_WIDTH.match(line):
            first = self._at
            while _FIXED_WIDTH.match(self.lines.text(self._at)):
                self._at += 1
            self.writer.add_code(first, self._at)
        elif _TABLE.match(line):
            self._read_table()
        else:
            return False
        return True

    def _read_delimited(self, name: str) -> None:
        if name not in _CODE_BLOCKS and name not in _DROPPED_BLOCKS:
            self._at += 1
            return
        first = self._at + 1
        end = first
        closing = f"#+end_{name}"
        while end < len(self.lines) and self.lines.text(end).strip().lower() != closing:
            end += 1
        if end - first == 1 and (bold := _BOLD_LINE.fullmatch(self.lines.text(first))):
            start = self.lines.starts[first]
            self.writer.add_code_span(start + bold.start("text"), start + bold.end("text"))
        elif name in _CODE_BLOCKS:
            self.writer.add_code(first, end)
        self._at = end + 1

    def _read_table(self) -> None:
        first = self._at
        while _TABLE.match(self.lines.text(self._at)):
            self._at += 1
        rows = [number for number in range(first, self._at) if not self._is_rule(number)]
        has_header = len(rows) > 1 and self._is_rule(rows[0] + 1) and rows[0] + 2 < self._at
        kind: BlockKind = "columns" if has_header else "table"
        for number in rows:
            cells = [
                [cell.span()] for cell in _CELL.finditer(self.lines.source, *self._bare(number))
            ]
            self.writer.add_row(cells, kind)
            kind = "row"

    def _is_rule(self, number: int) -> bool:
        return bool(_TABLE_RULE.match(self.lines.text(number)))

    def _bare(self, number: int) -> LineSpan:
        """The span of a line without the white space at its start."""
        start, end = self.lines.span(number)
        return start + self.lines.indent(number), end

    def _read_text(self, line: str) -> None:
        item = _ITEM.match(line)
        column = item.end() if item else self.lines.indent(self._at)
        start = self.lines.starts[self._at]
        term = _TERM.match(line, column) if item else None
        footnote = _FOOTNOTE.match(line)
        indent = self.lines.indent(self._at)
        while self._items and indent <= self._items[-1]:
            self._items.pop()
        if item:
            self._items.append(indent)
        kind: BlockKind = "item" if self._items else "text"
        if term:
            spans = self._paragraph(term.end())
            if len(spans) == 1 and term.end() == len(line):
                spans += self._indented_paragraph(self.lines.indent(self._at - 1))
            terms = [(start + column, start + term.end("term"))]
            self.writer.add_definition(terms, spans, kind, len(self._items))
        else:
            spans = self._paragraph(footnote.end() if footnote else column)
            if not self._is_contents(spans):
                self.writer.add(spans, kind, len(self._items))

    def _is_contents(self, spans: list[LineSpan]) -> bool:
        """Whether a paragraph is nothing but a link to a heading of this file."""
        return len(spans) == 1 and bool(_CONTENTS_LINK.fullmatch(self.lines.source, *spans[0]))

    def _indented_paragraph(self, indent: int) -> list[LineSpan]:
        """The paragraph below blank lines, if it is plain text and indented more than `indent`."""
        here = self._at
        while self._at + 1 < len(self.lines) and self.lines.is_blank(self._at):
            self._at += 1
        if self.lines.indent(self._at) > indent and not self._is_block_start(self._at):
            return self._paragraph(0)
        self._at = here
        return []

    def _paragraph(self, column: int) -> list[LineSpan]:
        """The lines of the paragraph at the current line, from `column` on; moves behind it."""
        start, end = self.lines.span(self._at)
        spans = [(start + column, end)]
        self._at += 1
        while not self.lines.is_blank(self._at):
            if self._is_block_start(self._at):
                break
            spans.append(self.lines.span(self._at))
            self._at += 1
        return spans

    def _is_block_start(self, number: int) -> bool:
        """Whether a line ends the paragraph above it."""
        line = self.lines.text(number)
        return bool(
            _ITEM.match(line)
            or _HEADING.match(line)
            or _KEYWORD.match(line)
            or _BEGIN.match(line)
            or _END.match(line)
            or _COMMENT.match(line)
            or _TABLE.match(line)
            or _FIXED_WIDTH.match(line)
            or _DRAWER.match(line)
        )


def _find_marks(text: str) -> list[Replacement]:
    """The spans of inline markup that are not shown, in order."""
    if not _MARKS.search(text):
        return []
    found: list[Replacement] = []
    marks: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        kind = token.lastgroup
        if kind == "target":
            prefix = _TARGET_PREFIX.match(text, start + 2)
            found += [(start, prefix.end() if prefix else start + 2, ""), (end - 2, end, "")]
        elif kind == "label" and _IMAGE.match(token["label"]):  # a badge
            found.append((start, end, ""))
        elif kind == "arguments" and (page := _PAGE_AND_SECTION.match(token["arguments"])):
            comma = token.start("arguments") + page.start("comma")
            found += [(start, token.start("arguments"), ""), (comma, comma + 1, "(")]
            found.append((token.end("arguments"), end, ")"))
        elif kind in ("label", "angle", "inline", "literal", "arguments", "ticks"):
            found += [(start, token.start(kind), ""), (token.end(kind), end, "")]
        elif kind == "gone":
            found.append((start, end, ""))
        elif kind == "mark":
            marks.append((start, end))
    return sorted([*found, *paired_marks(text, marks)])
