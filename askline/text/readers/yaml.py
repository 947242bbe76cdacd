"""
Read YAML with exact offsets, by its lines: keys, values and comments (`keyed_values`).

This is no parser: anchors, tags and templates are left out, and lists and mappings in brackets are
shown as they are written. A line is never refused, whatever it means to a parser.
"""

from __future__ import annotations

import re

from .comments import joined_pieces
from .document import Content
from .keyed_values import KeyedWriter, comment_pieces
from .markup import LineSpan, SourceLines
from .records import Piece
from .settings import unquoted_pieces

__all__ = [
    "read_yaml",
]

_START = re.compile(r"([ \t]*)((?:-(?:[ \t]+|\Z))*)")
_QUOTED_KEY = re.compile(r"(\"[^\"\\]*\"|'[^']*')[ \t]*:(?=[ \t]|\Z)")
_KEY_END = re.compile(r":(?=[ \t]|\Z)|[ \t]#")
_NO_KEY = frozenset("\"'[{&*!|>%@`#")
_PROPERTY = re.compile(r"(?:[&!][^ \t]*(?:[ \t]+|\Z))+|\*[^ \t]*\Z")
_BLOCK_SCALAR = re.compile(r"[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?")
_COMMENT = re.compile(r"[ \t]#")
_SKIPPED_LINES = ("%", "{{", "{%", "#cloud-config")
_NULLS = frozenset(("null", "~"))


def read_yaml(source: str) -> Content:
    """Text and blocks; places are lines."""
    return _Reader(source).read()


class _Reader:
    """The state while a file is read. `_at` is the next line."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = SourceLines(source)
        self._writer = KeyedWriter()
        self._columns: list[int] = []
        """Twice the column of the key of each open container, or of the dash plus one."""
        self._at = 0

    def read(self) -> Content:
        """Read all lines."""
        while self._at < len(self._lines):
            bare = self._lines.text(self._at).strip()
            if not bare or bare.startswith(_SKIPPED_LINES):
                self._at += 1
            elif bare in ("---", "..."):
                self._close(0)
                self._at += 1
            elif bare.startswith("#"):
                self._read_comments()
            else:
                self._read_entry()
        return self._writer.content(self._lines.starts)

    def _read_comments(self) -> None:
        spans: list[LineSpan] = []
        while (line := self._lines.text(self._at)).lstrip().startswith("#"):
            start, end = self._lines.span(self._at)
            spans.append((start + len(line) - len(line.lstrip(" \t#")), end))
            self._at += 1
        self._writer.add_comments(self._source, spans)

    def _read_entry(self) -> None:
        start, end = self._lines.span(self._at)
        self._at += 1
        found = _START.match(self._source, start, end)
        assert found is not None  # it may be empty
        indent, column = len(found[1]), found.end() - start
        if found[2]:  # an element of a list
            self._close(2 * indent + 1)
        else:
            self._close(2 * column)
        key, value_start = self._find_key(found.end(), end)
        if found[2] and key is not None:
            self._open(None, 2 * indent + 1)
        self._read_value(key, column if key is not None else indent, value_start, end)

    def _find_key(self, start: int, end: int) -> tuple[Piece | None, int]:
        """The key of a line and the start of its value."""
        quoted = _QUOTED_KEY.match(self._source, start, end)
        if quoted:
            first, last = quoted.start(1) + 1, quoted.end(1) - 1
            return (self._source[first:last], first, last), quoted.end()
        if self._source[start:end][:1] in _NO_KEY:
            return None, start
        mark = _KEY_END.search(self._source, start, end)
        if mark is None or mark[0] != ":" or mark.start() == start:
            return None, start
        key = self._source[start : mark.start()].rstrip()
        return (key, start, start + len(key)), mark.end()

    def _open(self, key: Piece | None, column: int) -> None:
        self._writer.open(key, is_element=key is None)
        self._columns.append(column)

    def _close(self, column: int) -> None:
        while self._columns and self._columns[-1] >= column:
            self._columns.pop()
            self._writer.close()

    def _read_value(self, key: Piece | None, column: int, start: int, end: int) -> None:
        while start < end and self._source[start] in " \t":
            start += 1
        skipped = _PROPERTY.match(self._source, start, end)
        if skipped:
            start = skipped.end()
        value = self._source[start:end].rstrip()
        if not value or value.startswith("#"):
            if key is not None:
                self._open(key, 2 * column)
            self._writer.add(None, (), comment=self._comment(start - 1, end))
        elif _BLOCK_SCALAR.fullmatch(value):
            self._read_block(key, column, keeps_lines=value[0] == "|")
        elif value[0] in "\"'":
            self._read_quoted(key, start, end)
        else:
            self._read_plain(key, column, start, end)

    def _read_block(self, key: Piece | None, column: int, *, keeps_lines: bool) -> None:
        """A text of several lines, which are all indented more than its key."""
        pieces: list[Piece] = []
        after_blank = False
        while self._at < len(self._lines):
            line = self._lines.text(self._at)
            bare = line.strip()
            indent = len(line) - len(line.lstrip())
            if bare and indent <= column:
                break
            if bare:
                start = self._lines.starts[self._at] + indent
                if pieces:
                    joint = "\n\n" if after_blank else "\n" if keeps_lines else " "
                    pieces.append((joint[0], pieces[-1][2], start))
                    pieces += [("\n", start, start)] * (len(joint) - 1)
                pieces.append((bare, start, start + len(bare)))
            after_blank = not bare
            self._at += 1
        self._writer.add(key, pieces)

    def _read_quoted(self, key: Piece | None, start: int, end: int) -> None:
        """A text in quotation marks, which may go on over several lines."""
        pieces, closed = unquoted_pieces(self._source, start, end)
        while not closed and self._at < len(self._lines) and not self._lines.is_blank(self._at):
            line, last = self._lines.span(self._at)
            first = line + self._lines.indent(self._at)
            more, closed = unquoted_pieces(self._source, first, last, quote=self._source[start])
            if pieces and more:
                pieces.append((" ", pieces[-1][2], more[0][1]))
            pieces += more
            self._at += 1
        last = self._lines.span(self._at - 1)[1]
        comment = self._comment(pieces[-1][2] if pieces else start, last)
        self._writer.add(key, pieces, comment=comment)

    def _read_plain(self, key: Piece | None, column: int, start: int, end: int) -> None:
        spans = [self._without_comment(start, end)]
        while self._at < len(self._lines):
            line = self._lines.text(self._at)
            bare = line.strip()
            if not bare or self._lines.indent(self._at) <= column or bare[0] in "#-":
                break
            first, last = self._lines.span(self._at)
            first += len(line) - len(line.lstrip())
            if self._find_key(first, last)[0] is not None:
                break
            spans.append(self._without_comment(first, last))
            self._at += 1
        comment = self._comment(spans[-1][1], self._lines.span(self._at - 1)[1])
        first, last = spans[0]
        value = self._source[first:last]
        if value in _NULLS:
            self._writer.add(None, (), comment=comment)
            return
        if value[:1] in ("[", "{") and len(spans) == 1:
            inner = value.strip("[]{} \t")
            first += value.find(inner)
            spans = [(first, first + len(inner))] if inner else []
        pieces = joined_pieces(self._source, (span for span in spans if span[0] < span[1]))
        self._writer.add(key, pieces, comment=comment)

    def _comment(self, start: int, end: int) -> list[Piece]:
        """The comment behind a value; empty if there is none."""
        found = _COMMENT.search(self._source, start, end)
        return comment_pieces(self._source, found.end(), end) if found else []

    def _without_comment(self, start: int, end: int) -> LineSpan:
        comment = _COMMENT.search(self._source, start, end)
        value = self._source[start : comment.start() if comment else end].rstrip()
        return start, start + len(value)
