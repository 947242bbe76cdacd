"""
Read Markdown with exact offsets back into the source.

Blocks are found line by line, by CommonMark's rules with GitHub's tables and a front matter, as far
as sentences need them: every heading, list item, table cell and code block is a block of its own.
The marks of quotes, lists, emphasis, code, links and images are removed, and so are comments and
link definitions. See research/decisions/reading-files.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape

from .document import BlockKind, Blocks, Content
from .offsets import TextBuilder, line_starts

__all__ = [
    "read_markdown",
]

LineSpan = tuple[int, int]
Replacement = tuple[int, int, str]
"""Start, end, and the text to show instead."""

# Patterns for lines.
_LINE = re.compile(r"[^\r\n]*")
_CONTAINER = re.compile(r"(?:[ ]{0,3}>[ ]?)+")
_FENCE = re.compile(r"[ ]*(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?=[ \t]|$)[ \t]*(?P<text>.*?)(?:(?:^|[ \t])#+)?[ \t]*$")
_UNDERLINE = re.compile(r"[ ]{0,3}(?:=+|-+)[ \t]*$")
_RULE = re.compile(r"[ ]{0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(?:\[[ xX]\][ \t]+)?|$)")
_DEFINITION = re.compile(r"[ ]{0,3}\[(?!\^)[^\]]+\]:[ \t]*\S")
_FOOTNOTE = re.compile(r"[ ]{0,3}\[\^[^\]]+\]:[ \t]*")
_CODE = re.compile(r"(?: {4}|[ ]{0,3}\t)")
_DASHES = re.compile(r"[ ]*\|?[ ]*:?-+:?[ ]*(?:\|[ ]*:?-+:?[ ]*)*\|?[ \t]*$")
_CELL = re.compile(r"(?:[^|\\`]|\\.|(`+)(?:(?!\1).)*\1|`+|\\)+")
_COMMENT = re.compile(r"[ ]{0,3}<(?:!--|(?P<name>script|style)\b)", re.IGNORECASE)
_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(?:.*?\r?\n)??(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)

# Patterns for marks inside a block. The length of code spans and links is limited, which keeps the
# time linear.
_TOKEN = re.compile(
    r"""\\(?P<escaped>[!-/:-@\[-`{-~])
    | (?P<ticks>`+) (?: (?P<code> (?!`).{1,2000}?(?<!`) ) (?P=ticks)(?!`) )?
    | \[\^[^\[\]\s]{1,99}\](?!:)(?P<note>)
    | (?P<open> !?\[ )
    | \](?P<target> \( [ ]* (?: <[^<>\n]*> | [^\s()]* (?:\([^\s()]*\)[^\s()]*)* )
                    (?: \s+ (?: "[^"]*" | '[^']*' ) )? \s* \)
                  | \[ [^\[\]]{0,99} \] )?(?P<close>)
    | (?P<run> \*+ | _+ | ~~ )
    | <(?P<link> [a-z][a-z0-9+.-]+:[^\s<>]* | [\w.+-]+@[\w.-]+ )>
    | < (?: !--.*?--> | /?[a-z][\w-]*(?:\s[^<>]*)?/?> )(?P<tag>)
    | &(?: \#\d{1,7} | \#x[0-9a-f]{1,6} | [a-z][a-z0-9]{1,31} );(?P<entity>)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_MARKS = re.compile(r"[\\`\[*_~<&]")
_PIECE = re.compile(r"\n|[^\n]+")


def read_markdown(source: str) -> Content:
    """Text, blocks and title, which is that of the front matter or else the first heading."""
    reader = _MarkdownReader(source)
    reader.read()
    builder = reader.builder
    starts = line_starts(source)
    return Content(builder.text(), reader.blocks, "line", starts, reader.title, builder.segments)


class _MarkdownReader:
    """Collects the lines of a paragraph until another block or a blank line ends it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.builder = TextBuilder()
        self.blocks = Blocks()
        self.title = ""
        self._paragraph: list[LineSpan] = []
        self._in_list = False
        self._position = 0

    def read(self) -> None:
        self._read_front_matter()
        for start, end in self._lines():
            self._handle_line(start, end)
        self._end_paragraph()

    def _lines(self) -> Iterator[LineSpan]:
        """Lines without line ends. Methods that read several lines advance the position."""
        while self._position < len(self.source):
            yield self._next_line()

    def _next_line(self) -> LineSpan:
        start = self._position
        end = _LINE.match(self.source, start).end()  # type: ignore[union-attr]
        self._position = end + (2 if self.source.startswith("\r\n", end) else 1)
        return start, end

    def _read_front_matter(self) -> None:
        matter = _FRONT_MATTER.match(self.source)
        if matter:
            title = _TITLE.search(matter[0])
            self.title = title[1].strip("'\"") if title else ""
            self._position = matter.end()

    def _handle_line(self, start: int, end: int) -> None:
        container = _CONTAINER.match(self.source, start, end)
        start = container.end() if container else start
        line = self.source[start:end]
        if not (self._paragraph or line[:1].isspace() or _ITEM.match(line)):
            self._in_list = self._in_list and not line
        if not line.strip():
            self._end_paragraph()
        elif self._try_code(line, start, end) or self._try_heading(line, start):
            pass
        elif _COMMENT.match(line):
            self._skip_comment(line, start)
        elif self._paragraph or not (_DEFINITION.match(line) or self._try_table(line, start, end)):
            self._add_text(line, start, end)

    def _try_code(self, line: str, start: int, end: int) -> bool:
        fence = _FENCE.match(line)
        if fence:
            self._end_paragraph()
            self._read_fenced_code(fence["mark"])
            return True
        if self._paragraph or self._in_list or not _CODE.match(line):
            return False
        while self._position < len(self.source):
            here = self._position
            first, last = self._next_line()
            following = self.source[first:last]
            if following.strip() and not _CODE.match(following):
                self._position = here
                break
            end = last if following.strip() else end
        self._add_block([(start, end)], "code")
        return True

    def _read_fenced_code(self, mark: str) -> None:
        start = end = self._position
        closing = re.compile(rf"[ >]*{re.escape(mark)}{re.escape(mark[0])}*[ \t]*$")
        for first, last in self._lines():
            if closing.match(self.source[first:last]):
                break
            end = last
        self._add_block([(start, end)], "code")

    def _try_heading(self, line: str, start: int) -> bool:
        marked = _HEADING.match(line)
        if marked:
            self._end_paragraph()
            self._in_list = False
            self._add_block([(start + marked.start("text"), start + marked.end("text"))], "heading")
        elif self._paragraph and not self._in_list and _UNDERLINE.match(line):
            self._end_paragraph("heading")
        elif _RULE.match(line):
            self._end_paragraph()
        else:
            return False
        return True

    def _skip_comment(self, line: str, start: int) -> None:
        self._end_paragraph()
        found = _COMMENT.match(line)
        name = found["name"] if found else None
        closing = f"</{name.lower()}>" if name else "-->"
        at = self.source.lower().find(closing, start) if name else self.source.find(closing, start)
        if at < 0:
            self._position = len(self.source)
            return
        self._position = at + len(closing)
        rest, end = self._next_line()
        if self.source[rest:end].strip():
            self._handle_line(rest, end)

    def _try_table(self, line: str, start: int, end: int) -> bool:
        here = self._position
        first, last = self._next_line() if here < len(self.source) else (here, here)
        dashes = self.source[first:last]
        if "|" not in line or "-" not in dashes or not _DASHES.match(dashes):
            self._position = here
            return False
        self._add_row(start, end, "columns")
        while self._position < len(self.source):
            here = self._position
            first, last = self._next_line()
            if "|" not in self.source[first:last]:
                self._position = here
                break
            self._add_row(first, last, "row")
        return True

    def _add_row(self, start: int, end: int, kind: BlockKind) -> None:
        blocks = len(self.blocks)
        for cell in _CELL.finditer(self.source, start, end):
            self._add_block([cell.span()], kind if len(self.blocks) == blocks else "cell")

    def _add_text(self, line: str, start: int, end: int) -> None:
        item = _ITEM.match(line)
        note = _FOOTNOTE.match(line)
        if item and (not self._paragraph or self._in_list or not _is_later_number(item[0])):
            self._end_paragraph()
            self._in_list = True
            self._handle_item_line(start + item.end(), end)
            return
        if note:
            self._end_paragraph()
            start += note.end()
        self._paragraph.append((start, end))

    def _handle_item_line(self, start: int, end: int) -> None:
        """The rest of a line after a list mark: another item, a heading, or text."""
        while inner := _ITEM.match(self.source, start, end):
            start = inner.end()
        line = self.source[start:end]
        if _HEADING.match(line):
            self._try_heading(line, start)
        elif line.strip():
            self._paragraph.append((start, end))

    def _end_paragraph(self, kind: BlockKind = "text") -> None:
        if self._paragraph:
            self._add_block(self._paragraph, kind)
            self._paragraph = []

    def _add_block(self, lines: list[LineSpan], kind: BlockKind) -> None:
        """Append a block; its lines are joined by single line breaks."""
        start = self.builder.length
        first, last = lines[0][0], lines[-1][1]
        if kind == "code":
            pieces = [(self.source[first:last], first, last)]
        else:
            pieces = list(_visible_pieces(self.source, lines))
        for piece in pieces:
            self.builder.add(*piece)
        self.blocks.add(start, self.builder.length, kind)
        if kind == "heading" and not self.title:
            self.title = " ".join("".join(piece for piece, _, _ in pieces).split())
        if self.builder.length > start:
            self.builder.insert("\n", last)


def _is_later_number(mark: str) -> bool:
    """Whether a list mark is a number above 1, which cannot start a list inside a paragraph."""
    return mark.strip()[:1].isdigit() and mark.strip() not in ("1.", "1)")


def _visible_pieces(
    source: str, lines: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, int, int]]:
    """
    The pieces of a block that are shown, each with its span in the source.

    Lines have no white space at either end and are joined by single line breaks.
    """
    block = TextBuilder()
    for start, end in lines:
        line = source[start:end]
        start += len(line) - len(line.lstrip())
        if block.length:
            block.add("\n", block.segments.end(block.length), start)
        block.add(line.strip(), start, start + len(line.strip()))
    text = block.text()
    position = 0
    for start, end, replacement in (*_replacements(text), (len(text), len(text), "")):
        for piece in _PIECE.finditer(text, position, start):
            yield piece[0], *block.segments.span(*piece.span())
        if replacement:
            yield replacement, *block.segments.span(start, end)
        position = end


def _replacements(text: str) -> list[Replacement]:
    """The spans of a block that are not shown as they are, in order."""
    if not _MARKS.search(text):
        return []
    found: list[Replacement] = []
    brackets: list[tuple[int, int]] = []
    runs: list[_DelimiterRun] = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        kind = token.lastgroup
        if kind == "escaped":
            found.append((start, start + 1, ""))
        elif kind == "code":
            found += [(start, token.start("code"), ""), (token.end("code"), end, "")]
        elif kind == "open":
            brackets.append((start, end))
        elif kind == "close" and brackets:
            opening = brackets.pop()
            if token["target"]:
                found += [(*opening, ""), (start, end, "")]
        elif kind == "run":
            runs.append(_DelimiterRun(text, start, end))
        elif kind == "link":
            found += [(start, start + 1, ""), (end - 1, end, "")]
        elif kind in ("tag", "note"):
            found.append((start, end, ""))
        elif kind == "entity":
            found.append((start, end, unescape(token[0])))
    return sorted([*found, *_emphasis(runs)])


class _DelimiterRun:
    """Equal marks in a row that may open or close emphasis by CommonMark's flanking rules."""

    def __init__(self, text: str, start: int, end: int) -> None:
        before, after = text[start - 1 : start], text[end : end + 1]
        self.mark = text[start]
        self.start, self.end = start, end
        left = bool(after.strip()) and (after.isalnum() or not before.isalnum())
        right = bool(before.strip()) and (before.isalnum() or not after.isalnum())
        self.opens = left and not (self.mark == "_" and before.isalnum())
        self.closes = right and not (self.mark == "_" and after.isalnum())


def _emphasis(runs: Sequence[_DelimiterRun]) -> Iterator[Replacement]:
    """The marks that form pairs; all other marks are text."""
    open_runs: dict[str, list[_DelimiterRun]] = {"*": [], "_": [], "~": []}
    for run in runs:
        waiting = open_runs[run.mark]
        while run.closes and waiting and run.start < run.end:
            opener = waiting[-1]
            size = min(opener.end - opener.start, run.end - run.start)
            yield opener.end - size, opener.end, ""
            yield run.start, run.start + size, ""
            opener.end -= size
            run.start += size
            if opener.start == opener.end:
                waiting.pop()
        if run.opens and run.start < run.end:
            waiting.append(run)
