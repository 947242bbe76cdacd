"""
Read settings with exact offsets: TOML, INI and Java properties, by their lines (`keyed_values`).

Sections are headings. Comments are text, and so are values with their keys.
"""

from __future__ import annotations

import json
import re

from .comments import joined_pieces
from .document import Content
from .keyed_values import KeyedWriter, comment_pieces
from .markup import LineSpan, SourceLines
from .offsets import replace_surrogates
from .records import Piece

__all__ = [
    "read_settings",
    "unquoted_pieces",
]

_SECTION = re.compile(r"[ \t]*\[+[ \t]*([^\[\]]+?)[ \t]*\]+[ \t]*(?:[#;].*)?")
_KEY_END = re.compile(r"[=:]")
_COMMENT_MARKS = "#;!"
_COMMENT = re.compile(r"[ \t][#;]")
_LONG_QUOTE = ('"""', "'''")
_QUOTED = {
    '"': re.compile(r'(?P<text>[^"\\]+)|(?P<escape>\\(?:u[0-9a-fA-F]{4}|.|\Z))|(?P<end>")'),
    "'": re.compile(r"(?P<text>[^']+)|(?P<escape>'')|(?P<end>')"),
}


def read_settings(source: str) -> Content:
    """Text and blocks; places are lines."""
    lines = SourceLines(source)
    writer = KeyedWriter()
    in_section = False
    at = 0
    while at < len(lines):
        line = lines.text(at)
        bare = line.strip()
        start, end = lines.span(at)
        if bare[:1] and bare[0] in _COMMENT_MARKS:
            at = _add_comments(writer, lines, at)
            continue
        at += 1
        section = _SECTION.fullmatch(line)
        if section:
            if in_section:
                writer.close()
            first, last = section.span(1)
            writer.open((section[1], start + first, start + last))
            in_section = True
        elif bare:
            at = _add_value(writer, lines, at, start, end)
    return writer.content(lines.starts)


def unquoted_pieces(
    source: str, start: int, end: int, *, quote: str = ""
) -> tuple[list[Piece], bool]:
    """
    The text in quotation marks from `start` on, and whether it is closed before `end`.

    `quote` is the open quotation mark if the text goes on from the line before. Each escape is a
    piece of its own.
    """
    pieces: list[Piece] = []
    if not quote:
        quote, start = source[start], start + 1
    for found in _QUOTED[quote].finditer(source, start, end):
        if found.lastgroup == "end":
            return pieces, True
        text = found[0]
        if found.lastgroup == "escape":
            text = "'" if quote == "'" else _unescape(text)
        if text:
            pieces.append((text, *found.span()))
    return pieces, False


def _unescape(escape: str) -> str:
    try:
        return replace_surrogates(json.loads(f'"{escape}"'))
    except ValueError:
        return escape[1:]


def _add_comments(writer: KeyedWriter, lines: SourceLines, at: int) -> int:
    """Add the comment that starts at a line; returns the line after it."""
    spans: list[LineSpan] = []
    while (line := lines.text(at)).lstrip()[:1] and line.lstrip()[0] in _COMMENT_MARKS:
        start, end = lines.span(at)
        spans.append((start + len(line) - len(line.lstrip(f" \t{_COMMENT_MARKS}")), end))
        at += 1
    writer.add_comments(lines.source, spans)
    return at


def _add_value(writer: KeyedWriter, lines: SourceLines, at: int, start: int, end: int) -> int:
    """Add a key with its value; returns the line after it."""
    source = lines.source
    mark = _KEY_END.search(source, start, end)
    if mark is None:  # the next line of a list, or of a long value
        key, first = None, start
    else:
        name = source[start : mark.start()].strip()
        begin = start + source[start : mark.start()].find(name)
        key = (name.strip("\"'") or name, begin, begin + len(name)) if name else None
        if key is not None and key[0] != name:
            key = (key[0], begin + 1, begin + 1 + len(key[0]))
        first = mark.end()
    while first < end and source[first] in " \t":
        first += 1
    quote = source[first : first + 3]
    if quote in _LONG_QUOTE:
        closed = source.find(quote, first + 3)
        last = closed if closed >= 0 else len(source)
        after = at
        while after < len(lines) and lines.starts[after] <= last:
            after += 1
        spans = [
            (max(lines.span(line)[0], first + 3), min(lines.span(line)[1], last))
            for line in range(at - 1, after)
        ]
        writer.add(key, joined_pieces(source, _bare(source, spans)))
        return after
    if source[first:end][:1] in ("'", '"'):
        pieces, _ = unquoted_pieces(source, first, end)
        comment = _COMMENT.search(source, pieces[-1][2] if pieces else first, end)
        said = comment_pieces(source, comment.end(), end) if comment else []
        writer.add(key, pieces, comment=said)
        return at
    comment = _COMMENT.search(source, first, end)
    value = source[first : comment.start() if comment else end].strip("[]{}, \t")
    if value[:1] in ("'", '"') and value[-1] == value[0] and value.count(value[0]) == 2:
        value = value[1:-1]
    begin = source.find(value, first, end)
    if value and (key is not None or " " in value):
        is_string = re.search(r"[^\W\d]", value) is not None
        said = comment_pieces(source, comment.end(), end) if comment else []
        pieces = [(value, begin, begin + len(value))]
        writer.add(key, pieces, is_string=is_string, comment=said)
    return at


def _bare(source: str, spans: list[LineSpan]) -> list[LineSpan]:
    """The spans without white space at their ends; empty ones are left out."""
    found = []
    for start, end in spans:
        text = source[start:end]
        bare = text.strip(" \t\\")  # a backslash at the end of a line joins it with the next
        if bare:
            start += len(text) - len(text.lstrip(" \t\\"))
            found.append((start, start + len(bare)))
    return found
