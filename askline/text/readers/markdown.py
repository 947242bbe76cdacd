"""
The text of a markdown block without the marks for emphasis, code, links and images.

Markdown to text: blocks by rules on lines, markup taken out, the way back kept.

CommonMark's blocks with GitHub's tables and a front matter, as far as sentences need them: every
heading, list item, table cell and code block is a block of its own, quotation marks and list marks
fall away, and so do comments and the definitions of links. See research/decisions/reading-files.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape

from .document import BlockKind, Blocks, Content
from .offsets import TextBuilder, line_starts

__all__ = [
    "_visible_pieces",
    "read_markdown",
]

Cut = tuple[int, int, str]
"""Start, end, and what stands there instead."""

# Code spans and links are looked for within bounds, which keeps the time linear.
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


def _visible_pieces(
    source: str, lines: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, int, int]]:
    """
    The pieces that a reader would see, each with its span of the source.

    The lines of the block come without white space at their ends, one line break between them.
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
    for start, end, instead in (*_cuts(text), (len(text), len(text), "")):
        for piece in _PIECE.finditer(text, position, start):
            yield piece[0], *block.segments.span(*piece.span())
        if instead:
            yield instead, *block.segments.span(start, end)
        position = end


def _cuts(text: str) -> list[Cut]:
    """What the block does not show, in order."""
    if not _MARKS.search(text):
        return []
    cuts: list[Cut] = []
    brackets: list[tuple[int, int]] = []
    runs: list[_Run] = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        kind = token.lastgroup
        if kind == "escaped":
            cuts.append((start, start + 1, ""))
        elif kind == "code":
            cuts += [(start, token.start("code"), ""), (token.end("code"), end, "")]
        elif kind == "open":
            brackets.append((start, end))
        elif kind == "close" and brackets:
            opening = brackets.pop()
            if token["target"]:
                cuts += [(*opening, ""), (start, end, "")]
        elif kind == "run":
            runs.append(_Run(text, start, end))
        elif kind == "link":
            cuts += [(start, start + 1, ""), (end - 1, end, "")]
        elif kind in ("tag", "note"):
            cuts.append((start, end, ""))
        elif kind == "entity":
            cuts.append((start, end, unescape(token[0])))
    return sorted([*cuts, *_emphasis(runs)])


class _Run:
    """A row of equal marks that may open or close emphasis, as CommonMark's flanking rules say."""

    def __init__(self, text: str, start: int, end: int) -> None:
        before, after = text[start - 1 : start], text[end : end + 1]
        self.mark = text[start]
        self.start, self.end = start, end
        left = bool(after.strip()) and (after.isalnum() or not before.isalnum())
        right = bool(before.strip()) and (before.isalnum() or not after.isalnum())
        self.opens = left and not (self.mark == "_" and before.isalnum())
        self.closes = right and not (self.mark == "_" and after.isalnum())


def _emphasis(runs: Sequence[_Run]) -> Iterator[Cut]:
    """The marks that have a partner; the others are text."""
    open_runs: dict[str, list[_Run]] = {"*": [], "_": [], "~": []}
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

Line = tuple[int, int]


def read_markdown(source: str) -> Content:
    """Text, blocks and title: the front matter's, or the first heading."""
    reader = _Markdown(source)
    reader.read()
    builder = reader.builder
    starts = line_starts(source)
    return Content(builder.text(), reader.blocks, "line", starts, reader.title, builder.segments)


class _Markdown:
    """The lines of a paragraph gather until something ends it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.builder = TextBuilder()
        self.blocks = Blocks()
        self.title = ""
        self._paragraph: list[Line] = []
        self._in_list = False
        self._position = 0

    def read(self) -> None:
        self._front_matter()
        for start, end in self._lines():
            self._line(start, end)
        self._end_paragraph()

    def _lines(self) -> Iterator[Line]:
        """Lines without their ends; readers of several lines move on by themselves."""
        while self._position < len(self.source):
            yield self._next_line()

    def _next_line(self) -> Line:
        start = self._position
        end = _LINE.match(self.source, start).end()  # type: ignore[union-attr]
        self._position = end + (2 if self.source.startswith("\r\n", end) else 1)
        return start, end

    def _front_matter(self) -> None:
        matter = _FRONT_MATTER.match(self.source)
        if matter:
            title = _TITLE.search(matter[0])
            self.title = title[1].strip("'\"") if title else ""
            self._position = matter.end()

    def _line(self, start: int, end: int) -> None:
        container = _CONTAINER.match(self.source, start, end)
        start = container.end() if container else start
        line = self.source[start:end]
        if not (self._paragraph or line[:1].isspace() or _ITEM.match(line)):
            self._in_list = self._in_list and not line
        if not line.strip():
            self._end_paragraph()
        elif self._code(line, start, end) or self._heading(line, start):
            pass
        elif _COMMENT.match(line):
            self._skip_comment(line, start)
        elif self._paragraph or not (_DEFINITION.match(line) or self._table(line, start, end)):
            self._text(line, start, end)

    def _code(self, line: str, start: int, end: int) -> bool:
        fence = _FENCE.match(line)
        if fence:
            self._end_paragraph()
            self._fenced(fence["mark"])
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
        self._block([(start, end)], "code")
        return True

    def _fenced(self, mark: str) -> None:
        start = end = self._position
        closing = re.compile(rf"[ >]*{re.escape(mark)}{re.escape(mark[0])}*[ \t]*$")
        for first, last in self._lines():
            if closing.match(self.source[first:last]):
                break
            end = last
        self._block([(start, end)], "code")

    def _heading(self, line: str, start: int) -> bool:
        marked = _HEADING.match(line)
        if marked:
            self._end_paragraph()
            self._in_list = False
            self._block([(start + marked.start("text"), start + marked.end("text"))], "heading")
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
            self._line(rest, end)

    def _table(self, line: str, start: int, end: int) -> bool:
        here = self._position
        first, last = self._next_line() if here < len(self.source) else (here, here)
        dashes = self.source[first:last]
        if "|" not in line or "-" not in dashes or not _DASHES.match(dashes):
            self._position = here
            return False
        self._row(start, end, "columns")
        while self._position < len(self.source):
            here = self._position
            first, last = self._next_line()
            if "|" not in self.source[first:last]:
                self._position = here
                break
            self._row(first, last, "row")
        return True

    def _row(self, start: int, end: int, kind: BlockKind) -> None:
        blocks = len(self.blocks)
        for cell in _CELL.finditer(self.source, start, end):
            self._block([cell.span()], kind if len(self.blocks) == blocks else "cell")

    def _text(self, line: str, start: int, end: int) -> None:
        item = _ITEM.match(line)
        note = _FOOTNOTE.match(line)
        if item and (not self._paragraph or self._in_list or not _is_number(item[0])):
            self._end_paragraph()
            self._in_list = True
            self._line_in_item(start + item.end(), end)
            return
        if note:
            self._end_paragraph()
            start += note.end()
        self._paragraph.append((start, end))

    def _line_in_item(self, start: int, end: int) -> None:
        """What stands after a list mark: another item, a heading, or text."""
        while inner := _ITEM.match(self.source, start, end):
            start = inner.end()
        line = self.source[start:end]
        if _HEADING.match(line):
            self._heading(line, start)
        elif line.strip():
            self._paragraph.append((start, end))

    def _end_paragraph(self, kind: BlockKind = "text") -> None:
        if self._paragraph:
            self._block(self._paragraph, kind)
            self._paragraph = []

    def _block(self, lines: list[Line], kind: BlockKind) -> None:
        """Add a block, its lines with one line break between them."""
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
            self.builder.gap("\n", last)


def _is_number(mark: str) -> bool:
    """A list that starts in the middle of a paragraph starts with a bullet or with 1."""
    return mark.strip()[:1].isdigit() and mark.strip() not in ("1.", "1)")
