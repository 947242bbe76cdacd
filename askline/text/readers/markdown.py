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
_CONTAINER = re.compile(r"(?:[ ]{0,3}>[ ]?){1,100}")
_FENCE = re.compile(r"[ ]*(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?=[ \t]|$)[ \t]*")
_UNDERLINE = re.compile(r"[ ]{0,3}(?:=+|-+)[ \t]*$")
_RULE = re.compile(r"[ ]{0,3}(?P<mark>[-*_])(?P<rest>.*)")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(?:\[[ xX]\][ \t]+)?|$)")
_DEFINITION = re.compile(r"[ ]{0,3}\[(?!\^)[^\]]+\]:[ \t]*\S")
_FOOTNOTE = re.compile(r"[ ]{0,3}\[\^[^\]]+\]:[ \t]*")
_CODE = re.compile(r"(?: {4}|[ ]{0,3}\t)")
_DASHES = re.compile(r":?-+:?")
_CELL_TOKEN = re.compile(r"\\.|`+|\|")
_BACKTICKS = re.compile(r"`+")
_COMMENT = re.compile(r"[ ]{0,3}<(?:!--|(?P<name>script|style)\b)", re.IGNORECASE)
_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(?:.*?\r?\n)??(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
_COMMENT_END = re.compile("-->")
_SCRIPT_END = {
    name: re.compile(f"</{name}>", re.IGNORECASE | re.ASCII) for name in ("script", "style")
}
_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)

# Patterns for marks inside a block. The length of code spans and links is limited, which keeps the
# time linear. So is the number of repetitions of a group, because `re` keeps each in memory.
_TOKEN = re.compile(
    r"""\\(?P<escaped>[!-/:-@\[-`{-~])
    | (?P<ticks>`+) (?: (?P<code> (?!`).{1,2000}?(?<!`) ) (?P=ticks)(?!`) )?
    | \[\^[^\[\]\s]{1,99}\](?!:)(?P<note>)
    | (?P<open> !?\[ )
    | \](?P<target> \( [ ]* (?=\S) (?: <[^<>\n]*> | [^\s()]* (?:\([^\s()]*\)[^\s()]*){0,99} )
                    (?: \s+ (?: "[^"]*" | '[^']*' ) )? \s* \)
                  | \( (?: \s+ (?: "[^"]*" | '[^']*' ) )? \s* \)
                  | \[ [^\[\]]{0,99} \] )?(?P<close>)
    | (?P<run> \*+ | _+ | ~~ )
    | <(?P<link> [a-z][a-z0-9+.-]+:[^\s<>]* | [\w.+-]+@[\w.-]+ )>
    | <!--(?P<comment>)
    | < /?[a-z][\w-]*(?:\s[^<>]*)?/?> (?P<tag>)
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
            self.title = title[1].strip().strip("'\"") if title else ""
            self._position = matter.end()

    def _handle_line(self, start: int, end: int) -> None:
        start = self._skip_containers(start, end)
        line = self.source[start:end]
        if not (self._paragraph or line[:1].isspace() or _ITEM.match(line)):
            self._in_list = self._in_list and not line
        if not line.strip():
            self._end_paragraph()
        elif self._try_code(line, start, end) or self._try_heading(line, start):
            pass
        elif _COMMENT.match(line):
            self._skip_comments(start)
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
        for first, last in self._lines():
            closing = self.source[first:last].lstrip(" >").rstrip(" \t")
            if len(closing) >= len(mark) and not closing.strip(mark[0]):
                break
            end = last
        self._add_block([(start, end)], "code")

    def _try_heading(self, line: str, start: int) -> bool:
        marked = _HEADING.match(line)
        if marked:
            self._end_paragraph()
            self._in_list = False
            first = start + marked.end()
            last = first + len(_heading_text(line[marked.end() :]))
            self._add_block([(first, last)], "heading", marked[0].count("#"))
        elif self._paragraph and not self._in_list and _UNDERLINE.match(line):
            self._end_paragraph("heading", 1 if "=" in line else 2)
        elif _is_rule(line):
            self._end_paragraph()
        else:
            return False
        return True

    def _skip_comments(self, start: int) -> None:
        """
        Continue after the comment at `start`; the rest of its last line is read like a line.

        Comments that follow on the same line are skipped at once: a line may consist of thousands,
        and reading the rest of the line after each would take quadratic time.
        """
        self._end_paragraph()
        while comment := _COMMENT.match(self.source, start):
            self._in_list = self._in_list and self.source[start].isspace()
            name = comment["name"]
            closing = _SCRIPT_END[name.casefold()] if name else _COMMENT_END
            found = closing.search(self.source, start)
            self._position = found.end() if found else len(self.source)
            start = self._skip_containers(self._position, len(self.source))
        here = self._position
        rest, end = self._next_line()
        self._position = here if self.source[rest:end].strip() else self._position

    def _skip_containers(self, start: int, end: int) -> int:
        """The offset after the marks of quotes at `start`."""
        while container := _CONTAINER.match(self.source, start, end):
            start = container.end()
        return start

    def _try_table(self, line: str, start: int, end: int) -> bool:
        here = self._position
        first, last = self._next_line() if here < len(self.source) else (here, here)
        dashes = self.source[first:last]
        if "|" not in line or not _is_delimiter_row(dashes):
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
        for first, last in _cells(self.source[start:end]):
            span = start + first, start + last
            self._add_block([span], kind if len(self.blocks) == blocks else "cell")

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

    def _end_paragraph(self, kind: BlockKind = "text", level: int = 0) -> None:
        if self._paragraph:
            self._add_block(self._paragraph, kind, level)
            self._paragraph = []

    def _add_block(self, lines: list[LineSpan], kind: BlockKind, level: int = 0) -> None:
        """Append a block; its lines are joined by single line breaks."""
        start = self.builder.length
        first, last = lines[0][0], lines[-1][1]
        if kind == "code":
            pieces = [(self.source[first:last], first, last)]
        else:
            pieces = list(_visible_pieces(self.source, lines))
        for piece in pieces:
            self.builder.add(*piece)
        self.blocks.add(start, self.builder.length, kind, level)
        if kind == "heading" and not self.title:
            self.title = " ".join("".join(piece for piece, _, _ in pieces).split())
        if self.builder.length > start:
            self.builder.insert("\n", last)


def _heading_text(text: str) -> str:
    """The text of a heading without the marks that may close it."""
    text = text.rstrip(" \t")
    before = text.rstrip("#")
    return before[:-1] if before != text and before.endswith((" ", "\t")) else text


def _is_rule(line: str) -> bool:
    """Whether a line is a thematic break: at least three equal marks and nothing else."""
    found = _RULE.match(line)
    if found is None:
        return False
    mark, rest = found["mark"], found["rest"]
    return not rest.strip(f"{mark} \t") and rest.count(mark) >= 2


def _is_delimiter_row(line: str) -> bool:
    """Whether a line is the one below a table's header, such as `|:--|--:|`."""
    if "-" not in line or line.strip(" \t|:-"):
        return False
    bare = line.lstrip(" ").rstrip(" \t").removeprefix("|").removesuffix("|")
    return all(_DASHES.fullmatch(cell.strip(" ")) for cell in bare.split("|"))


def _cells(line: str) -> Iterator[LineSpan]:
    """The cells of a table row, without empty ones; a bar in code or after `\\` is text."""
    runs = [(run.start(), len(run[0])) for run in _BACKTICKS.finditer(line)]
    longest_after = [0]  # the longest run of backticks after each run, from the last run
    for _, length in reversed(runs):
        longest_after.append(max(longest_after[-1], length))
    run = 0
    start = position = 0
    while token := _CELL_TOKEN.search(line, position):
        position = token.end()
        if token[0] == "|":
            if token.start() > start:
                yield start, token.start()
            start = position
        elif token[0][0] == "`":
            while run < len(runs) and runs[run][0] < position:
                run += 1
            position = _code_end(line, token, longest_after[len(runs) - run])
    if len(line) > start:
        yield start, len(line)


def _code_end(line: str, ticks: re.Match[str], longest_after: int) -> int:
    """
    Where the code ends that starts with these backticks; their own end if they start no code.

    Code ends at as many backticks as it starts with. If no later run is that long, the other
    backticks of this run are part of the code. `longest_after` is the length of the longest later
    run: a search that must succeed reads only what is skipped, so the time stays linear.
    """
    length = len(ticks[0])
    if length == 1 and not longest_after:
        return ticks.end()
    if length // 2 >= longest_after:  # the run is an opening and a closing mark
        return ticks.start() + length // 2 * 2
    mark = min(length, longest_after)
    return line.index("`" * mark, ticks.end()) + mark


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
    last_comment_end = text.rfind("-->")
    position = 0
    while token := _TOKEN.search(text, position):
        start, position = token.span()
        end = position
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
        elif kind == "comment":
            if last_comment_end >= end:
                position = text.index("-->", end) + 3
                found.append((start, position, ""))
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
