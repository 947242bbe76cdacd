"""
Read Markdown with exact offsets back into the source.

Blocks are found line by line, by CommonMark's rules with GitHub's tables and a front matter, as far
as sentences need them: every heading, list item, table cell and code block is a block of its own,
and a term is one block with its definition. The marks of quotes, lists, emphasis, code, links and
images are removed, and so are comments and link definitions. Of the additions that sites make to
Markdown, the fences of admonitions and tabs, includes, shortcodes, attribute lists, and the imports
of MDX are left out; the text between them is read. So are blocks of nothing but links or images.
See research/decisions/reading-files.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .document import Blocks, Content
from .kinds import QUESTION_LEVEL, BlockKind
from .markdown_inline import is_link_list, join_lines, normalize_label, visible_pieces
from .markup import LineSpan
from .offsets import TextBuilder, line_starts
from .plain_text import add_lines

__all__ = [
    "read_markdown",
]

_LINE = re.compile(r"[^\r\n]*")
_CONTAINER = re.compile(r"(?:[ ]{0,3}>[ ]?){1,100}")
_FENCE = re.compile(r"[ ]*(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?=[ \t]|$)[ \t]*")
_UNDERLINE = re.compile(r"[ ]{0,3}(?:=+|-+)[ \t]*$")
_FORMULA = re.compile(r"\$\$[^$]+\$\$[.,]?|\\\[.+\\\]", re.DOTALL)
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
_LABEL = re.compile(r"^[ ]{0,3}\[(?!\^)([^\]\n]{1,99})\]:", re.MULTILINE)

# Additions to Markdown.
_FENCED_TEXT = re.compile(
    r"""[ \t]* (?: :{3,} | /{3,} | (?:!!!|\?\?\?)\+?(?=[ ]) | ===[!+]?(?=[ ]") )
    [ \t]* (?P<rest>.*)""",
    re.VERBOSE,
)
_FENCE_TITLE = re.compile(r"""(?:[\w.-]+[ \t]*)?(?:["|\[][ \t]*)?(?P<title>[^"\]{}]*)""")
_ADDITION_STARTS = frozenset(":/!?=-{<[@$*")
_CODE_SHORTCODE = re.compile(
    r"[ \t]*(?:\{\{[<%][ ]*(?P<hugo>highlight|code-toggle|code|mermaid)\b[^{}]*(?<!/)[>%]\}\}"
    r"|\{%-?[ ]*(?P<liquid>highlight|code|codeblock|mermaid)\b[^{}]*%\})[ \t]*\Z"
)
_LEAST_TITLE_WORDS = 4  # the title of an admonition with fewer words is a label, such as "Note"
_DROPPED_LINE = re.compile(
    r"""[ \t]* (?: --8<-- .* | \{!.*!\} | \{%.*%\} | \{\{.*\}\} | \{[:#.][^{}]*\} | <<<[ ]\S+.*
    | \[!\w+\].* | @include\b.* | (?:\[TOC\]|\[\[_?TOC_?\]\]|\$\{?toc\}?)
    | \*\[[^\]]+\]:.* ) [ \t]*\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_MODULE_LINE = re.compile(
    r"import\s+(?:[\w*{][^'\"]*\bfrom\s+)?['\"][^'\"]+['\"];?\s*\Z"
    r"|(?P<open>import\s+(?:\w+,\s*)?\{[^}]*\Z|export\s+(?:const|let|var|default|function|async|class)\b)"
)
_HEADING_ATTRIBUTES = re.compile(r"[ \t]*\{[^{}]*\}[ \t]*\Z")
_TERM_MEANING = re.compile(r"[ ]{0,3}:[ \t]+(?=\S)")
_MEANING_AHEAD = re.compile(r"[ ]{0,3}:[ \t]+\S")
_CODE_LINE = re.compile(r"`(?=\w*[^\w`\n])[^`\n]+`[ \t]*\Z")
"""A paragraph that is code and nothing else, but not the name of something."""
_CODE_ITEM = re.compile(r"[ \t]*`(?=[^`\n]*[^\s`] [^\s`])[^`\n]+`[ \t]*\Z")
"""A list item that is code of several words."""
_BOLD_LINE = re.compile(r"(?P<mark>\*\*|__)(?=\S)[^*_]{2,200}(?<=[^\s.!,;:])(?P=mark)[ \t]*\Z")


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
        labels = _LABEL.findall(source) if "[" in source else ()
        self._labels = {normalize_label(label) for label in labels}
        self._paragraph: list[LineSpan] = []
        self._terms: list[LineSpan] = []  # which the paragraph defines
        self._in_list = False  # or in another block whose text is indented
        self._item_indents: list[int] = []  # of the open list items
        self._position = 0
        self._has_carriage_returns = "\r" in source

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
        if self._has_carriage_returns:
            end = _LINE.match(self.source, start).end()  # type: ignore[union-attr]
            self._position = end + (2 if self.source.startswith("\r\n", end) else 1)
            return start, end
        end = self.source.find("\n", start)
        if end < 0:
            end = len(self.source)
        self._position = end + 1
        return start, end

    def _read_front_matter(self) -> None:
        matter = _FRONT_MATTER.match(self.source)
        if matter:
            title = _TITLE.search(matter[0])
            self.title = title[1].strip().strip("'\"") if title else ""
            self._position = matter.end()

    def _handle_line(self, start: int, end: int) -> None:
        # Most lines are plain text, blank lines and headings: they are told apart without patterns.
        mark = self.source[start : start + 1]
        if mark.isalpha() and self._try_plain_text(start, end):
            return
        if start == end:
            if not self._in_list and not self._paragraph:
                self._item_indents.clear()
            self._handle_blank_line()
            return
        if mark == "#" and self._try_heading(self.source[start:end], start):
            return
        start = self._skip_containers(start, end)
        line = self.source[start:end]
        if not (self._paragraph or line[:1].isspace() or _ITEM.match(line)):
            self._in_list = self._in_list and not line
            if not self._in_list:
                self._item_indents.clear()
        if not line.strip():
            self._handle_blank_line()
        elif self._try_code(line, start, end) or self._try_heading(line, start):
            pass
        elif _COMMENT.match(line):
            self._skip_comments(start)
        elif not self._try_addition(line, start, end) and (
            self._paragraph or not (_DEFINITION.match(line) or self._try_table(line, start, end))
        ):
            self._add_text(line, start, end)

    def _try_plain_text(self, start: int, end: int) -> bool:
        """Handle a line that starts with a letter, which most lines do, without patterns."""
        line = self.source[start:end]
        if line.startswith(("import", "export")):
            return False
        if not self._paragraph:
            self._in_list = False
            self._item_indents.clear()
            if self._try_table(line, start, end):
                return True
        self._paragraph.append((start, end))
        return True

    def _handle_blank_line(self) -> None:
        """End the paragraph, unless it is a term whose meaning follows."""
        if (
            len(self._paragraph) != 1
            or self._terms
            or not _MEANING_AHEAD.match(self.source, self._position)
        ):
            self._end_paragraph()

    def _try_addition(self, line: str, start: int, end: int) -> bool:
        """Handle a line of what sites add to Markdown."""
        if line.startswith(("import", "export")):
            return self._try_module(line)
        if line.lstrip()[0] not in _ADDITION_STARTS:
            return False
        fence = _FENCED_TEXT.match(line)
        meaning = _TERM_MEANING.match(line)
        if fence:
            self._end_paragraph()
            if line.lstrip()[0] in "!?=":  # the text is indented
                self._in_list = True
                self._open_item(len(line) - len(line.lstrip()))
            title = _FENCE_TITLE.match(fence["rest"])
            if title and len(title["title"].split()) >= _LEAST_TITLE_WORDS:
                first = start + fence.start("rest")
                self._add_block([(first + title.start("title"), first + title.end())], "text")
        elif meaning:
            if self._terms or not self._paragraph:
                self._end_paragraph()
            else:
                self._terms, self._paragraph = self._paragraph, []
            self._paragraph.append((start + meaning.end(), end))
            self._in_list = True
        elif shortcode := _CODE_SHORTCODE.match(line):
            self._end_paragraph()
            self._read_shortcode(shortcode["hugo"] or f"end{shortcode['liquid']}")
        elif _DROPPED_LINE.match(line):
            self._end_paragraph()
        else:
            return False
        return True

    def _try_module(self, line: str) -> bool:
        """Move behind an import or export of MDX, which ends with its brackets."""
        module = _MODULE_LINE.match(line)
        if self._paragraph or not module:
            return False
        depth = _bracket_depth(line) if module["open"] else 0
        while depth > 0 and self._position < len(self.source):
            here = self._position
            first, last = self._next_line()
            following = self.source[first:last]
            if following.startswith("#"):  # the brackets were those of a text
                self._position = here
                break
            depth += _bracket_depth(following)
        return True

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

    def _read_shortcode(self, name: str) -> None:
        """Read the code between two shortcodes of Hugo or Jekyll; `name` is in the second."""
        closing = re.compile(rf"[ \t]*\{{[{{%][<%]?-?[ ]*/?[ ]*{name}\b")
        start = end = self._position
        for first, last in self._lines():
            if closing.match(self.source, first, last):
                break
            end = last
        self._add_block([(start, end)], "code")

    def _try_heading(self, line: str, start: int) -> bool:
        marked = _HEADING.match(line)
        if marked:
            self._end_paragraph()
            self._in_list = False
            self._item_indents.clear()
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
        if "|" not in line:
            return False
        here = self._position
        first, last = self._next_line() if here < len(self.source) else (here, here)
        dashes = self.source[first:last]
        if not _is_delimiter_row(dashes):
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
            self._open_item(len(item["indent"].expandtabs(4)))
            self._handle_item_line(start + item.end(), end)
            return
        if note:
            self._end_paragraph()
            start += note.end()
        self._paragraph.append((start, end))

    def _open_item(self, indent: int) -> None:
        while self._item_indents and self._item_indents[-1] >= indent:
            self._item_indents.pop()
        self._item_indents.append(indent)

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
        if not self._paragraph:
            return
        lines, self._paragraph = self._paragraph, []
        terms, self._terms = self._terms, []
        if kind == "text" and len(lines) == 1 and not (self._in_list or terms):
            first, last = lines[0]
            if _BOLD_LINE.match(self.source, first, last):
                kind, level = "heading", QUESTION_LEVEL
            elif _CODE_LINE.match(self.source, first, last):
                lines, kind = [(first + 1, self.source.rindex("`", first, last))], "code"
        elif kind == "text" and self._item_indents:
            kind, level = "item", len(self._item_indents)
            if len(lines) == 1 and _CODE_ITEM.match(self.source, *lines[0]):
                first, last = (self.source.find("`", *lines[0]), self.source.rfind("`", *lines[0]))
                lines, kind, level = [(first + 1, last)], "code", 0
        self._add_block(lines, kind, level, terms)

    def _add_block(
        self,
        lines: list[LineSpan],
        kind: BlockKind,
        level: int = 0,
        terms: list[LineSpan] | None = None,
    ) -> None:
        """
        Append a block; its lines are joined by single line breaks.

        Terms stand before their meaning: `term: meaning`. A term that is a question is a heading.
        """
        if terms and self.source[slice(*terms[-1])].rstrip(" \t*_").endswith("?"):
            self._add_block(terms, "heading", QUESTION_LEVEL)
            terms = None
        start = self.builder.length
        first, last = lines[0][0], lines[-1][1]
        if kind == "code":
            pieces = [(self.source[first:last], first, last)]
        else:
            block = join_lines(self.source, lines)
            if kind == "text" and block.text[:1] in "$\\" and _FORMULA.fullmatch(block.text):
                kind = "code"
            if kind in ("text", "item") and is_link_list(block.text, self._labels):
                return
            pieces = visible_pieces(block, self._labels)
        if terms:
            term = visible_pieces(join_lines(self.source, terms), self._labels)
            colon = "" if term and term[-1][0].endswith(":") else ":"
            pieces = [*term, (f"{colon} ", terms[-1][1], terms[-1][1]), *pieces]
        for piece in pieces:
            self.builder.add(*piece)
        if kind == "text" and self._has_hard_breaks(lines):
            text, parts = "".join(piece for piece, _, _ in pieces), Blocks()
            add_lines(parts, text, 0, len(text))
            for begin, end, _, _ in parts:
                self.blocks.add(start + begin, start + end, kind, level)
        else:
            self.blocks.add(start, self.builder.length, kind, level)
        if kind == "heading" and not self.title:
            self.title = " ".join("".join(piece for piece, _, _ in pieces).split())
        if self.builder.length > start:
            self.builder.insert("\n", last)

    def _has_hard_breaks(self, lines: Sequence[LineSpan]) -> bool:
        """Whether all lines but the last end with two spaces or a backslash."""
        ends = (self.source.find("\n", last) for _, last in lines[:-1])
        return len(lines) > 1 and all(
            self.source[first:end].rstrip("\r").endswith(("  ", "\\"))
            for (first, _), end in zip(lines, ends, strict=False)
        )


def _bracket_depth(line: str) -> int:
    """How many brackets a line opens and does not close."""
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))


def _heading_text(text: str) -> str:
    """The text of a heading without the marks that may close it."""
    if text.rstrip(" \t").endswith("}"):
        text = _HEADING_ATTRIBUTES.sub("", text)
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
    bare = line.strip(" \t").removeprefix("|").removesuffix("|")
    return all(_DASHES.fullmatch(cell.strip(" \t")) for cell in bare.split("|"))


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
