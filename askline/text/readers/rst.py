"""
Read reStructuredText with exact offsets back into the source.

Follows the docutils specification as far as sentences need it, with the directives and roles of
Sphinx. A term and its definition are one block, and so are an option, a field or a documented
object and the first paragraph about it. Literal blocks are code. Comments, targets, substitutions,
directive options, tables of contents and images are left out.
"""

from __future__ import annotations

import re

from .document import Content
from .kinds import BlockKind
from .markup import LineSpan, MarkupWriter, Replacement, SourceLines, paired_marks
from .rst_tables import GRID_BORDER, SIMPLE_BORDER, RstTables

__all__ = [
    "read_rst",
]

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*\Z")
_EXPLICIT = re.compile(r"\.\.(?:\s+|\Z)")
_DIRECTIVE = re.compile(r"\.\.\s+(?:\|[^|]+\|\s+)?(?P<name>[A-Za-z][\w:.+-]*?)\s?::(?:\s+|\Z)")
_FOOTNOTE = re.compile(r"\.\.\s+\[[^\]]+\]\s*")
_FIELD = re.compile(r":(?P<name>[^:\s`](?:[^:\\`]|\\.|:(?!\s|\Z))*):(?:\s+|\Z)")
_PARAMETER = re.compile(
    r"(?:param|parameter|arg|argument|key|keyword|kwarg|var|ivar|cvar)\s+.*?(?=\S+\Z)"
)
_METADATA = frozenset(
    ("orphan", "tocdepth", "nocomments", "nosearch", "no-search", "date", "rtype")
)
_ITEM = re.compile(r"(?:[-*+•‣⁃]|\(?(?:\d{1,3}|[a-zA-Z#]|[ivxIVX]{1,5})[.)])(?:\s+|\Z)")
_OPTION = re.compile(r"(?:--?\w|/[a-zA-Z?])\S*(?: \S+)*? {2,}(?=\S)")
_LINE_BLOCK = re.compile(r"\|(?:\s+|\Z)")

_CODE_DIRECTIVES = frozenset(
    """code code-block sourcecode parsed-literal math doctest testcode testoutput testsetup
    testcleanup productionlist prompt ipython graphviz digraph graph uml mermaid plot console
    command-output""".split()
)
_TEXT_DIRECTIVES = frozenset(
    """note warning tip important caution danger attention hint error admonition seealso todo topic
    sidebar rubric epigraph highlights pull-quote compound centered""".split()
)
"""Their argument is the start of their text."""
_VERSION_DIRECTIVES = frozenset(("versionadded", "versionchanged", "deprecated", "versionremoved"))
_DROPPED_DIRECTIVES = frozenset(
    """toctree image include literalinclude index contents raw currentmodule module py:module
    highlight default-role meta tabularcolumns replace unicode date sectionauthor codeauthor
    moduleauthor sectnum header footer target-notes role title autosummary bibliography csv-include
    py:currentmodule js:module c:namespace cpp:namespace program""".split()
)
_CONTAINER_DIRECTIVES = frozenset(
    """only ifconfig container class rst-class hlist figure list-table csv-table table glossary
    tab-set tabs grid""".split()
)
"""Their argument is left out and their body is read."""

_TOKEN = re.compile(
    r"""\\(?P<escaped>.)
    | ``(?P<literal>(?:[^`]|`(?!`)){1,2000})``
    | (?P<role>:[A-Za-z][\w:.+-]{0,60}:)?`(?P<quoted>[^`\\]{1,2000}(?:\\.[^`\\]{0,500}){0,20})`
        (?P<after>__?(?!\w)|:[A-Za-z][\w:.+-]{0,60}:)?
    | (?<!\w)_`(?P<target>[^`]{1,500})`
    | (?P<note>[ ]?\[(?:\#[\w-]{0,60}|\*|[\w.-]{1,60})\]_(?!\w))
    | (?<![\w|])\|(?P<substitution>[A-Za-z][^|\n]{0,60})\|_{0,2}(?!\w)
    | (?<![\w`])_(?=[A-Za-z]{1,40}_(?![\w`'"]))(?P<emphasis>)  # of Markdown
    | (?<=[A-Za-z0-9])(?P<reference>__?)(?![\w`'"])
    | (?P<mark>\*{1,2})
    """,
    re.VERBOSE | re.DOTALL,
)
_MARKS = re.compile(r"[\\`*_|]")
_EMBEDDED_TARGET = re.compile(r"\s*<[^<>]*>\Z")


def read_rst(source: str) -> Content:
    """Text, blocks and title, which is the first section title."""
    reader = _RstReader(source)
    reader.read()
    return reader.writer.content()


class _RstReader(RstTables):
    """Reads one block after the other; nested blocks are read like blocks at the top."""

    def __init__(self, source: str) -> None:
        lines = SourceLines(source)
        super().__init__(lines, MarkupWriter(lines, _find_marks))
        self._items: list[int] = []  # the columns at which the text of the open list items starts
        self._title_styles: dict[tuple[str, bool], int] = {}  # their levels, in order of appearance

    def read(self) -> None:
        while self.at < len(self.lines):
            if self.lines.is_blank(self.at):
                self.at += 1
            else:
                self._read_block(self.lines.indent(self.at))

    def _read_block(self, column: int) -> None:
        """Read the block at the current line, whose content starts at `column`."""
        line = self.lines.text(self.at)
        if self._try_title(line):
            self._items.clear()
            return
        while self._items and column < self._items[-1]:
            self._items.pop()
        while item := _ITEM.match(line, column):
            column = item.end()
            self._items.append(column)
        rest = line[column:]
        if not rest.strip():
            self.at += 1
        elif _EXPLICIT.match(rest):
            self._read_explicit(rest, column)
        elif rest.startswith("__ ") or rest.rstrip() == "__":
            self.at += 1
        elif rest.startswith(">>> "):
            self._read_doctest()
        elif GRID_BORDER.match(rest):
            self.read_grid_table(column)
        elif SIMPLE_BORDER.match(rest):
            self.read_simple_table(column)
        else:
            self._read_body(rest, column)

    def _read_body(self, rest: str, column: int) -> None:
        field = _FIELD.match(rest)
        option = _OPTION.match(rest)
        start = self.lines.starts[self.at] + column
        if field and not rest.startswith((":`", "::")):
            self._read_field(field, start, column)
        elif option:
            self._read_definition((start, start + option.end()), column + option.end(), column)
        elif _LINE_BLOCK.match(rest):
            self._read_line_block(column)
        else:
            self._read_paragraph(column)

    def _try_title(self, line: str) -> bool:
        following = self.lines.text(self.at + 1)
        if _ADORNMENT.match(line) and not _EXPLICIT.match(line):
            mark = line.rstrip()
            if len(mark) >= 2 and following.strip():
                closing = self.lines.text(self.at + 2).rstrip()
                if closing == mark and not _ADORNMENT.match(following):
                    level = self._title_level(mark[0], overlined=True)
                    self.writer.add([self.lines.span(self.at + 1)], "heading", level)
                    self.at += 3
                    return True
            if len(mark) >= 4:
                self.at += 1  # a line between two sections
                return True
            return False
        mark = following.rstrip()
        if line[:1].isspace() or not _ADORNMENT.match(mark) or mark in ("..", "::"):
            return False
        if len(mark) < min(len(line.rstrip()), 4):
            return False
        level = self._title_level(mark[0], overlined=False)
        self.writer.add([self.lines.span(self.at)], "heading", level)
        self.at += 2
        return True

    def _title_level(self, mark: str, *, overlined: bool) -> int:
        """The first style of titles in a file is the highest level, the next new one the second."""
        return self._title_styles.setdefault((mark, overlined), len(self._title_styles) + 1)

    def _paragraph(self, column: int) -> list[LineSpan]:
        """The lines of the paragraph at the current line, from `column` on; moves behind it."""
        start, end = self.lines.span(self.at)
        spans = [(start + column, end)]
        self.at += 1
        while not self.lines.is_blank(self.at) and self.lines.indent(self.at) >= column:
            spans.append(self.lines.span(self.at))
            self.at += 1
        return spans

    def _read_paragraph(self, column: int) -> None:
        indent = self.lines.indent(self.at + 1)
        start, end = self.lines.span(self.at)
        is_term = not self.lines.is_blank(self.at + 1) and indent > column
        if is_term and not self.lines.text(self.at).rstrip().endswith("::"):
            self._read_definition((start + column, end), None, column)
        else:
            self._add(self._paragraph(column), column)

    def _read_definition(self, term: LineSpan, rest: int | None, column: int) -> None:
        """
        Join a term with the first paragraph of its definition.

        `rest` is the column at which the definition starts on the same line, if it does.
        """
        spans: list[LineSpan] = []
        if rest is not None:
            start, end = self.lines.span(self.at)
            spans.append((start + rest, end))
        self.at += 1
        indent = self.lines.indent(self.at)
        if not self.lines.is_blank(self.at) and indent > column and self._is_plain(indent):
            spans += self._paragraph(indent)
        self._add(spans, column, [term])

    def _is_plain(self, indent: int) -> bool:
        """Whether the current line starts a paragraph, not a list, a directive or a table."""
        rest = self.lines.text(self.at)[indent:]
        return not (
            _EXPLICIT.match(rest)
            or _ITEM.match(rest)
            or _FIELD.match(rest)
            or GRID_BORDER.match(rest)
            or SIMPLE_BORDER.match(rest)
            or rest.startswith(">>> ")
        )

    def _add(self, spans: list[LineSpan], column: int, terms: list[LineSpan] | None = None) -> None:
        """Append a paragraph; if it ends with `::`, the block that follows is code."""
        literal = False
        if spans:
            start, end = spans[-1]
            last = self.lines.source[start:end].rstrip()
            literal = last.endswith("::")
            if literal:
                bare = last[:-2].rstrip()
                spans[-1] = (start, start + (len(bare) if bare != last[:-2] else len(last) - 1))
                if not bare:
                    spans.pop()
        kind: BlockKind = "item" if self._items else "text"
        if terms:
            self.writer.add_definition(terms, spans, kind, len(self._items))
        else:
            self.writer.add(spans, kind, len(self._items))
        if literal:
            self._read_indented_code(column)
            self._read_quoted_code(column)

    def _read_quoted_code(self, column: int) -> None:
        """Read commands behind `::` that are not indented, as `$ ` says that they are code."""
        first = self.at
        while first < len(self.lines) and self.lines.is_blank(first):
            first += 1
        last = first
        while last < len(self.lines) and self.lines.text(last).startswith("$ ", column):
            last += 1
        if last > first:
            self.writer.add_code(first, last)
            self.at = last

    def _read_field(self, field: re.Match[str], start: int, column: int) -> None:
        name = field["name"]
        if name in _METADATA or (self.writer.title == "" and not field.string[field.end() :]):
            self._skip_body(column)
            return
        parameter = _PARAMETER.match(name)
        first = start + field.start("name") + (parameter.end() if parameter else 0)
        self._read_definition((first, start + field.end("name")), column + field.end(), column)

    def _read_line_block(self, column: int) -> None:
        """Read lines that start with a bar, the first at `column`, which may be in a list item."""
        spans = []
        while found := _LINE_BLOCK.match(self.lines.text(self.at), column):
            start, end = self.lines.span(self.at)
            spans.append((start + found.end(), end))
            self.at += 1
            column = self.lines.indent(self.at)
        self.writer.add(spans)

    def _skip_body(self, column: int) -> None:
        self.at += 1
        self.at = self.body_end(column)

    def _read_indented_code(self, column: int) -> None:
        end = self.body_end(column)
        self.writer.add_code(self.at, end)
        self.at = end

    def _read_doctest(self) -> None:
        first = self.at
        while self.at < len(self.lines) and not self.lines.is_blank(self.at):
            self.at += 1
        self.writer.add_code(first, self.at)

    def _read_explicit(self, rest: str, column: int) -> None:
        directive = _DIRECTIVE.match(rest)
        footnote = _FOOTNOTE.match(rest)
        if directive and not rest[2:].lstrip().startswith("|"):
            self._read_directive(directive["name"].lower(), directive.end(), column)
        elif footnote and rest[footnote.end() :].strip():
            self._read_paragraph_after(column + footnote.end(), column)
        else:
            self._skip_body(column)  # a comment, a target or a substitution

    def _read_paragraph_after(self, start_column: int, column: int) -> None:
        """Read a paragraph that starts after a mark and goes on in lines that are indented."""
        start, end = self.lines.span(self.at)
        self.at += 1
        spans = [(start + start_column, end)]
        while not self.lines.is_blank(self.at) and self.lines.indent(self.at) > column:
            spans.append(self.lines.span(self.at))
            self.at += 1
        self._add(spans, column)

    def _read_directive(self, name: str, end: int, column: int) -> None:
        argument = self.lines.text(self.at)[column + end :].strip()
        if name in _DROPPED_DIRECTIVES or name.startswith("auto"):
            self._skip_body(column)
        elif name in _CODE_DIRECTIVES:
            self.at += 1
            self._skip_options(column)
            self._read_indented_code(column)
        elif name in _TEXT_DIRECTIVES and argument:
            self._read_text_argument(column, column + end)
        elif name in _VERSION_DIRECTIVES:
            self._read_version(name, column, column + end)
        elif name in _TEXT_DIRECTIVES or name in _CONTAINER_DIRECTIVES or not argument:
            self.at += 1
            header = self._skip_options(column)
            if name == "list-table":
                self.read_list_table(column, header)
            elif name == "csv-table":
                self.read_csv_table(column, header)
            else:
                while self.lines.is_blank(self.at) and self.at < len(self.lines):
                    self.at += 1
        else:
            self._read_object(column, column + end)

    def _read_text_argument(self, column: int, start_column: int) -> None:
        start, end = self.lines.span(self.at)
        self.at += 1
        spans = [(start + start_column, end)]
        if not _FIELD.match(self.lines.text(self.at).lstrip()):
            while not self.lines.is_blank(self.at) and self.lines.indent(self.at) > column:
                spans.append(self.lines.span(self.at))
                self.at += 1
        self._skip_options(column)
        self._add(spans, column)

    def _read_version(self, name: str, column: int, start_column: int) -> None:
        """Join `versionadded 2.1` with what was added, if anything is said."""
        start = self.lines.starts[self.at] + column
        line = self.lines.text(self.at)
        words = line[start_column:].split(maxsplit=1)
        number_end = start_column + (len(words[0]) if words else 0)
        first = start + self.lines.text(self.at)[column:].index(name)
        terms = [
            (first, first + len(name)),
            (start - column + start_column, start - column + number_end),
        ]
        begin, end = self.lines.span(self.at)
        spans = [(begin + number_end, end)]
        self.at += 1
        while self.lines.is_blank(self.at) and len(words) < 2 and self.at + 1 < len(self.lines):
            self.at += 1
        indent = self.lines.indent(self.at)
        if not self.lines.is_blank(self.at) and indent > column and self._is_plain(indent):
            spans += self._paragraph(indent)
        if len(words) < 2 and len(spans) < 2:
            return  # a version number alone is not a sentence
        self._add([*terms, *spans], column)

    def _read_object(self, column: int, start_column: int) -> None:
        """Join the names of a documented object with the first paragraph about it."""
        start, end = self.lines.span(self.at)
        terms = [(start + start_column, end)]
        self.at += 1
        while not self.lines.is_blank(self.at) and self.lines.indent(self.at) > column:
            if _FIELD.match(self.lines.text(self.at).lstrip()):
                break
            terms.append(self.lines.span(self.at))
            self.at += 1
        self._skip_options(column)
        while self.at < len(self.lines) and self.lines.is_blank(self.at):
            self.at += 1
        indent = self.lines.indent(self.at)
        if self.at < len(self.lines) and indent > column:
            if self._is_plain(indent):
                self._add(self._paragraph(indent), column, terms)
            else:  # a signature alone is not a sentence
                self.writer.add(terms, "code")

    def _skip_options(self, column: int) -> list[LineSpan]:
        """Move behind the options of a directive; the cells of a `:header:` are returned."""
        header: list[LineSpan] = []
        while not self.lines.is_blank(self.at) and self.lines.indent(self.at) > column:
            line = self.lines.text(self.at)
            option = _FIELD.match(line.lstrip())
            if not option:
                break
            start = self.lines.starts[self.at] + self.lines.indent(self.at) + option.end()
            if option["name"] == "header-rows" and line.split()[-1] != "0":
                header = [(0, 0)]
            elif option["name"] == "header":
                header = list(self.csv_cells(start, self.lines.span(self.at)[1]))
            indent = self.lines.indent(self.at)
            self.at += 1
            while not self.lines.is_blank(self.at) and self.lines.indent(self.at) > indent:
                self.at += 1
        return header


def _find_marks(text: str) -> list[Replacement]:
    """The spans of inline markup that are not shown, in order."""
    if not _MARKS.search(text):
        return []
    found: list[Replacement] = []
    stars: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        kind = token.lastgroup
        if kind == "escaped":
            found.append((start, end if token["escaped"].isspace() else start + 1, ""))
        elif kind in ("literal", "target", "substitution"):
            found += [(start, token.start(kind), ""), (token.end(kind), end, "")]
        elif kind in ("quoted", "after"):
            first, last = _shown_part(token)
            found += [(start, first, ""), (last, end, "")]
        elif kind in ("note", "reference", "emphasis"):
            found.append((start, end, ""))
        elif kind == "mark":
            stars.append((start, end))
    return sorted([*found, *paired_marks(text, stars)])


def _shown_part(token: re.Match[str]) -> tuple[int, int]:
    """The span that is shown of `text <target>`, `~module.name` and `!name`."""
    start, end = token.span("quoted")
    quoted = token["quoted"]
    target = _EMBEDDED_TARGET.search(quoted, max(len(quoted) - 500, 0))
    if target and target.start() > 0:
        return start, start + target.start()
    if target:
        return start + quoted.index("<") + 1, end - 1
    if quoted.startswith("~"):
        return start + quoted.rfind(".") + 1 + (0 if "." in quoted else 1), end
    return start + (1 if token["role"] and quoted.startswith("!") else 0), end
