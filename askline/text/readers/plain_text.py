"""
Read plain text: the text itself, with underlined lines as headings.

    Installation
    ============

A table of contents is left out. Everything else is left to the sentence splitter, which handles
lists, rules and wrapped lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .document import Blocks, Content
from .offsets import line_starts

__all__ = [
    "read_plain_text",
]

# The pattern starts with a line break, because `re` then skips all other characters quickly.
_RULE = re.compile(r"\n[ \t]*(?P<mark>[=\-~*^#+])(?P=mark)+[ \t]*(?=\r?\n|\Z)")
_DOUBLE_MARKS = ("==", "---", "~~~", "***", "^^^", "###", "+++")
_TITLE = re.compile(r"[ \t]*(?P<title>\S(?:[^\n]*\S)?)\s*\Z")
_MAX_TITLE_CHARACTERS = 150
_TITLE_SHARE = 0.6  # of the title that is underlined, at least
_ITEM = re.compile(r"[-*+•]\s|\(?\d{1,3}[.)]\s+\S+\s*\Z")
_COLUMNS = re.compile(r"\S(?: {2,}|\t)\S")  # a line of a table
_LETTER = re.compile(r"[^\W\d_]")
_CONTENTS = re.compile(r"[ \t]*(?:table of )?contents:?[ \t]*\r?\n", re.IGNORECASE)
_ENTRY = re.compile(
    r"""[ \t\r\n]*
    (?: (?:(?:\d{1,3}\.)*\d{1,3}\.?|[A-Z]\.(?:\d{1,3}\.?)*|[IVX]{1,5}\.
          |(?:Chapter|Part|Appendix|Section)[ ]\w{1,4}[.:]?) [ \t]+ [^\n]{1,100}
      | [^\n]{1,100}?[ \t.]{3,}\d{1,4}[ \t\r]* )
    (?:\n|\Z)""",
    re.VERBOSE,
)
_MIN_ENTRIES = 3


def read_plain_text(source: str) -> Content:
    """The text and its blocks, with the offsets of the source."""
    blocks = Blocks()
    levels: dict[str, int] = {}  # of the marks, in the order in which they first occur
    position = 0
    contents = list(_contents(source))
    for start, end, rule_end, mark in _titles(source):
        _add_text(blocks, position, start, contents)
        blocks.add(start, end, "heading", levels.setdefault(mark, len(levels) + 1))
        position = rule_end
    _add_text(blocks, position, len(source), contents)
    return Content(source, blocks, "line", line_starts(source))


def _add_text(blocks: Blocks, start: int, end: int, left_out: list[tuple[int, int]]) -> None:
    """Add a block of text, or several around spans that are left out."""
    while left_out and left_out[0][0] < end:
        first, last = left_out.pop(0)
        if first > start:
            blocks.add(start, first, "text")
        start = max(start, last)
    if start < end:
        blocks.add(start, end, "text")


def _contents(source: str) -> Iterator[tuple[int, int]]:
    """The spans of tables of contents: their heading, and the numbered titles below it."""
    end = 0
    for start in sorted(_line_starts_of(source, "ontents") | _line_starts_of(source, "ONTENTS")):
        heading = _CONTENTS.match(source, start)
        if heading is None or start < end:
            continue
        count, end = 0, heading.end()
        while entry := _ENTRY.match(source, end):
            count, end = count + 1, entry.end()
        if count >= _MIN_ENTRIES:
            yield start, end


def _line_starts_of(source: str, word: str) -> set[int]:
    """Where the lines start that contain a word; much faster than a pattern."""
    starts, at = set[int](), source.find(word)
    while at >= 0:
        starts.add(source.rfind("\n", 0, at) + 1)
        end = source.find("\n", at)
        at = source.find(word, end) if end >= 0 else -1
    return starts


def _titles(source: str) -> Iterator[tuple[int, int, int, str]]:
    """Start and end of each title, the end of the line below it, and its mark."""
    position = 0
    if not any(mark in source for mark in _DOUBLE_MARKS):  # much faster than the pattern
        return
    for rule in _RULE.finditer(source):
        start = max(source.rfind("\n", position, rule.start()) + 1, position)
        title = _TITLE.match(source, start, rule.start())
        if title and _is_title(source, start, title["title"], rule):
            yield *title.span("title"), rule.end(), rule["mark"]
            position = rule.end()


def _is_title(source: str, start: int, title: str, rule: re.Match[str]) -> bool:
    """Whether a line above a rule is a title: short, underlined, and below a blank line."""
    above = source[source.rfind("\n", 0, max(start - 1, 0)) + 1 : max(start - 1, 0)].strip()
    length = len(rule[0].strip())
    return (
        len(title) <= _MAX_TITLE_CHARACTERS
        and (not above or above == rule[0].strip())
        and (length >= len(title) * _TITLE_SHARE or (rule["mark"] == "=" and length == 2))
        and (length > 2 or rule["mark"] == "=")
        and bool(_LETTER.search(title))
        and not (_ITEM.match(title) or _COLUMNS.search(title))
    )
