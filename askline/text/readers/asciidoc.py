"""
Read AsciiDoc with exact offsets back into the source.

Follows the AsciiDoc language as far as sentences need it. A term and its description are one block.
Listings and literal blocks are code. Attributes are replaced by their values where the document
sets them. Comments, includes, conditions, images and passthrough blocks are left out.
"""

from __future__ import annotations

import re

from .document import Content
from .kinds import BlockKind
from .markup import LineSpan, MarkupWriter, Replacement, SourceLines, paired_marks

__all__ = [
    "read_asciidoc",
]

_HEADING = re.compile(r"(?:={1,6}|#{1,6})[ \t]+(?=\S)")
_UNDERLINE = re.compile(r"([=~^+-])\1+\s*\Z")
_ATTRIBUTE = re.compile(r":!?(?P<name>\w[\w-]*(?:[ ][A-Z][\w-]*)?)!?:(?:\s+(?P<value>.*\S)?\s*)?\Z")
_DRAWN_LINE = re.compile(r"[|+].*[|+]\s*\Z")  # of a box that is drawn with characters
_BLOCK_ATTRIBUTES = re.compile(r"\[(?:\[[^\[\]]+\]|[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\s*\Z")
_BLOCK_TITLE = re.compile(r"\.(?=[^\s.])")
_BLOCK_MACRO = re.compile(r"[a-z][\w-]*::[^\s\[]*\[.*\]\s*\Z|(?:'''|<<<|---|\* \* \*)\s*\Z")
_CODE_DELIMITER = re.compile(r"(-{4,}|\.{4,}|`{3,}(?=[\w,+-]*\s*\Z)|~{4,})")
_DROPPED_DELIMITER = re.compile(r"(/{4,}|\+{4,})\s*\Z")
_TEXT_DELIMITER = re.compile(r"(?:={4,}|\*{4,}|_{4,}|--)\s*\Z")
_TABLE_DELIMITER = re.compile(r"([|!,:])={3,}\s*\Z")
_ITEM = re.compile(
    r"[ \t]*(?:\*{1,6}|-|\.{1,6}|\d{1,3}\.|[a-zA-Z]\.|<(?:\d{1,3}|\.)>)"
    r"[ \t]+(?:\[[ xX*]\][ \t]+)?(?=\S)"
)
_TERM = re.compile(r"[ \t]*(?P<term>\S.*?)(?P<mark>:{2,4}|;;)(?:[ \t]+|\Z)")
_ADMONITION = re.compile(r"(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+")
_CELL_MARK = re.compile(
    r"(?<!\\)(?:(?<=\s)|^)?(?:\d*(?:\.\d+)?[+*])?[<^>]?(?:\.[<^>])?[aehlmsdv]?\|"
)
_COLUMNS = re.compile(r"""cols\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<plain>[^,\]]*))""")
_REPEATED_COLUMN = re.compile(r"\s*(\d+)\*")
_PAGE_LINK = re.compile(r"\s*(?:(?:xref|link):[^\s\[\]]+\[[^\[\]]*\]|<<[^<>]+>>)\s*")
_MACRO_OPTIONS = re.compile(
    r"[a-z][\w-]*=[^\[\],]{1,100}(?:,[a-z][\w-]*=[^\[\],]{1,100}){0,9}(?=\])"
)
_MAN_SECTION = re.compile(r"\d[a-z]{0,4}(?=\])")
_HARD_BREAK = re.compile(r"[ \t]\+\s*\Z")

_INTRINSIC = {
    "nbsp": " ", "sp": " ", "empty": "", "zwsp": "", "wj": "", "plus": "+", "asterisk": "*",
    "caret": "^", "tilde": "~", "backtick": "`", "backslash": "\\", "startsb": "[", "endsb": "]",
    "vbar": "|", "amp": "&", "lt": "<", "gt": ">", "apos": "'", "quot": '"', "lsquo": "‘",
    "rsquo": "’", "ldquo": "“", "rdquo": "”", "deg": "°", "cpp": "C++", "blank": "",
    "two-colons": "::", "two-semicolons": ";;",
}  # fmt: skip
_TOKEN = re.compile(
    r"""\\(?P<escaped>[*_`\#^~+\[\]{<\\|(:'"])
    | (?P<gone>\(\(\([^()]{0,300}\)\)\) | \[\[[^\[\]]{0,200}\]\]
        | \[[.\#%][\w.\#%-]{1,60}\](?=[\#*_`])
        | (?<![\w])(?:image|icon|footnote(?:ref)?|indexterm2?|anchor|counter2?|toc|bibitem)
          :[^\s\[\]]{0,300}\[(?:[^\[\]\\]|\\.){0,1000}\])
    | (?<![\w:])pass:\w{0,9}\[(?P<passed>(?:[^\[\]\\]|\\.){0,1000})\]
    | <<(?P<anchor>[^<>,]{1,200})(?:,(?P<label>[^<>]{1,300}))?>>
    | (?P<macro>(?<![\w:])(?:(?P<url>https?://|mailto:|ftp://|irc://)|[a-z]\w{1,20}:(?![:/\s]))
        (?P<target>[^\s\[\]]{0,500})\[ | \{[\w-]{1,60}\}(?P<path>[^\s\[\]]{0,200})\[)
    | (?P<open>\[)
    | (?P<close>\^?(?:,\s*(?:window|role|opts|id|title|rel)=[^\[\]]{0,200}
        |,\w{1,60},[\w-]{0,60}[./][\w./-]{0,100}(?:,\w{1,60})?)?\])  # an anchor and a file
    | \{(?P<attribute>[\w-]{1,60})\}
    | \(\((?P<index>[^()]{1,200})\)\)
    | (?P<double>\*\*|__|``|\#\#|\+\+\+?)
    | (?P<mark>[*_`\#^~+])
    """,
    re.VERBOSE | re.DOTALL,
)
_MARKS = re.compile(r"[\\\[<{*_`#^~+(]|:\w")
_CODE_STYLES = ("source", "listing", "literal", "plantuml", "ditaa", "mermaid", "graphviz")
_MAX_NAME_LINES = 2  # below the title
_NAMES = re.compile(
    r"""(?: [^\W\d_][\w.'’-]* (?:[ ][^\W\d_][\w.'’-]*){0,2} (?:[ ]<[^<>]*>)? (?:;[ ].*)?
          | (?:v|\d|version\b|revision\b).* ) \s*\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_MATH_STYLES = ("stem", "latexmath", "asciimath")


def read_asciidoc(source: str) -> Content:
    """Text, blocks and title, which is the first heading."""
    reader = _AsciidocReader(source)
    reader.read()
    return reader.writer.content()


class _AsciidocReader:
    """Reads one block after the other; the content of text blocks is read like the rest."""

    def __init__(self, source: str) -> None:
        self.lines = SourceLines(source)
        self.writer = MarkupWriter(self.lines, self._find_marks)
        self._at = 0  # the current line
        self._attributes = dict(_INTRINSIC)
        self._style = ""  # the block attributes above the current line
        self._in_list = False
        self._items: list[str] = []  # the marks of the open list items
        self._attached = False  # whether `+` joins the next block to a list item

    def read(self) -> None:
        self._read_header()
        while self._at < len(self.lines):
            line = self.lines.text(self._at)
            if not line.strip():
                self._at += 1
            elif not self._try_dropped(line):
                self._read_block(line)
                self._style, self._attached = "", False

    def _read_header(self) -> None:
        """
        The lines directly below the title of the document name authors and versions.

        There are at most two, besides attributes and comments.
        """
        while self.lines.text(self._at).startswith(("//", ":")) or (
            self.lines.is_blank(self._at) and self._at + 1 < len(self.lines)
        ):
            if not self._try_dropped(self.lines.text(self._at)):
                self._at += 1
        if self.lines.text(self._at).startswith("= "):
            self._read_block(self.lines.text(self._at))
            names = 0
            while not self.lines.is_blank(self._at):
                line = self.lines.text(self._at)
                if self._try_dropped(line):
                    continue
                if names == _MAX_NAME_LINES or not _NAMES.match(line):
                    break
                names += 1
                self._at += 1

    def _try_dropped(self, line: str) -> bool:
        """Move behind a line or a block that has no text."""
        attribute = _ATTRIBUTE.match(line)
        dropped = _DROPPED_DELIMITER.match(line)
        if attribute:
            value = attribute["value"] or ""
            self._attributes[attribute["name"]] = value
            while value.endswith("\\") and self._at + 1 < len(self.lines):
                self._at += 1
                value = self.lines.text(self._at).rstrip()
        elif dropped:
            self._at = self._closing(line.rstrip())
        elif _BLOCK_ATTRIBUTES.match(line):
            self._style += line.strip()
        elif line.strip() == "+":
            self._attached = True
        elif not (line.startswith("//") or _BLOCK_MACRO.match(line)):
            return False
        self._at += 1
        return True

    def _read_block(self, line: str) -> None:
        heading = _HEADING.match(line)
        start, end = self.lines.span(self._at)
        code = _CODE_DELIMITER.match(line)
        is_listing = self._style[1:].startswith(_CODE_STYLES)
        if heading:
            self._in_list = False
            self._items.clear()
            level = len(heading[0].rstrip())
            self.writer.add([(start + heading.end(), end)], "heading", level)
            self._at += 1
        elif code and (line.rstrip() == code[1] or line.startswith("```")):
            self._read_delimited_code(code[1])
        elif line.rstrip() == "--" and is_listing:
            self._read_delimited_code("--")
        elif _TABLE_DELIMITER.match(line):
            self._read_table(line.rstrip())
        elif _TEXT_DELIMITER.match(line):
            self._at += 1
        elif self._try_underlined(line):
            self._at += 2
        elif _BLOCK_TITLE.match(line) and not _ITEM.match(line):
            self.writer.add([(start + 1, end)])
            self._at += 1
        elif is_listing or self._style[1:].startswith(_MATH_STYLES):
            self._read_code_paragraph()
        else:
            self._read_text(line)

    def _try_underlined(self, line: str) -> bool:
        """A title on two lines, the second of which has the same length, give or take one."""
        mark = self.lines.text(self._at + 1).rstrip()
        title = line.rstrip()
        if not _UNDERLINE.match(mark) or abs(len(mark) - len(title)) > 1 or len(title) < 3:
            return False
        if line[:1].isspace() or _ITEM.match(line) or _TERM.match(line):
            return False
        self._in_list = False
        self.writer.add([self.lines.span(self._at)], "heading", "=-~^+".index(mark[0]) + 1)
        return True

    def _closing(self, delimiter: str) -> int:
        """The number of the line that closes the block opened by the current line."""
        at = self._at + 1
        while at < len(self.lines) and self.lines.text(at).rstrip() != delimiter:
            at += 1
        return at

    def _read_delimited_code(self, delimiter: str) -> None:
        end = self._closing(delimiter)
        self.writer.add_code(self._at + 1, end)
        self._at = end + 1

    def _read_code_paragraph(self) -> None:
        first = self._at
        while not self.lines.is_blank(self._at) and self.lines.text(self._at).rstrip() != "+":
            self._at += 1
        self.writer.add_code(first, self._at)

    def _read_text(self, line: str) -> None:
        item = _ITEM.match(line)
        term = _TERM.match(line)
        if item:
            self._in_list = True
            self._open_item(item[0].split()[0])
            self._add(self._paragraph(item.end()), "item")
        elif term:
            self._in_list = True
            self._read_definition()
        elif line[:1].isspace():
            self._read_code_paragraph()
        else:
            self._in_list = self._in_list and not self.lines.is_blank(self._at - 1)
            admonition = _ADMONITION.match(line)
            first = self._at
            spans = self._paragraph(admonition.end() if admonition else 0)
            if self._at - first > 1 and all(
                _DRAWN_LINE.match(self.lines.text(at)) for at in range(first, self._at)
            ):
                self.writer.add_code(first, self._at)
                return
            if self._items and self._attached:
                self._add(spans, "item")
            else:
                self._items.clear()
                self._add(spans, "text")

    def _add(self, spans: list[LineSpan], kind: BlockKind) -> None:
        """Append a paragraph unless it is nothing but a link to another page."""
        if len(spans) != 1 or not _PAGE_LINK.fullmatch(self.lines.source, *spans[0]):
            self.writer.add(spans, kind, len(self._items))

    def _open_item(self, mark: str) -> None:
        """A mark that is not open yet starts a list inside the list item above."""
        mark = re.sub(r"\w+", "1", mark)
        if mark in self._items:
            del self._items[self._items.index(mark) :]
        self._items.append(mark)

    def _paragraph(self, column: int) -> list[LineSpan]:
        """The lines of the paragraph at the current line, from `column` on; moves behind it."""
        spans: list[LineSpan] = []
        first = self._at
        while not self.lines.is_blank(self._at):
            line = self.lines.text(self._at)
            if self._at > first and self._is_block_start(line):
                break
            start, end = self.lines.span(self._at)
            if not line.startswith("//") or self._at == first:
                hard_break = _HARD_BREAK.search(line)
                end = start + hard_break.start() if hard_break else end
                spans.append((start + (column if self._at == first else 0), end))
            self._at += 1
        return spans

    def _is_block_start(self, line: str) -> bool:
        if self._in_list and (_ITEM.match(line) or _TERM.match(line)):
            return True
        mark = line.rstrip()
        return mark == "+" or bool(
            _BLOCK_ATTRIBUTES.match(mark)
            or _BLOCK_MACRO.match(mark)
            or _TEXT_DELIMITER.match(mark)
            or _TABLE_DELIMITER.match(mark)
            or _DROPPED_DELIMITER.match(mark)
            or ((code := _CODE_DELIMITER.match(mark)) and (code[1] == mark or mark[:3] == "```"))
        )

    def _read_definition(self) -> None:
        """Join one or more terms with the paragraph that describes them."""
        terms: list[LineSpan] = []
        column = 0
        while term := _TERM.match(self.lines.text(self._at)):
            start = self.lines.starts[self._at]
            terms.append((start + term.start("term"), start + term.end("term")))
            column = term.end()
            if self.lines.text(self._at)[column:].strip():
                break
            self._at += 1
            column = 0
            following = self._at
            while following + 1 < len(self.lines) and self.lines.is_blank(following):
                following += 1
            if not _TERM.match(self.lines.text(following)):
                self._at = following if self._describes(following) else self._at
                break
            self._at = following
        described = column or self._describes(self._at)
        self.writer.add_definition(terms, self._paragraph(column) if described else [])

    def _describes(self, number: int) -> bool:
        """Whether the line is a plain paragraph and so belongs to the term above it."""
        line = self.lines.text(number)
        return bool(line.strip()) and not (
            self._is_block_start(line)
            or _HEADING.match(line)
            or line.startswith(("//", ":", "."))
            or _ATTRIBUTE.match(line)
        )

    def _read_table(self, delimiter: str) -> None:
        end = self._closing(delimiter)
        first = self._at + 1
        while first < end and self.lines.is_blank(first):
            first += 1
        separated = delimiter[0] in ",:" or "format=" in self._style
        mark = re.compile(f"[{delimiter[0].replace('|', ',')}]") if separated else _CELL_MARK
        cells: list[list[LineSpan]] = []
        per_row = self._column_count()
        code = ""
        for number in range(first, end):
            line = self.lines.text(number)
            if code or _CODE_DELIMITER.match(line):
                code = line.rstrip() if not code else "" if line.rstrip() == code else code
                continue
            if line.strip() and not line.startswith("//"):
                self._add_cells(number, line, mark, separated, cells)
            if not per_row:
                per_row = len(cells)
        header = "header" in self._style or (
            first > self._at and self.lines.is_blank(first + 1) and "noheader" not in self._style
        )
        kind: BlockKind = "columns" if header and len(cells) > per_row else "table"
        for at in range(0, len(cells), per_row or 1):
            self.writer.add_row(cells[at : at + per_row], kind if at == 0 else "row")
        self._at = end + 1

    def _column_count(self) -> int:
        """The number of columns that the block attributes declare, or 0."""
        found = _COLUMNS.search(self._style)
        if not found:
            return 0
        columns = found["quoted"] if found["quoted"] is not None else found["plain"]
        count = 0
        for column in columns.replace(";", ",").split(","):
            repeated = _REPEATED_COLUMN.match(column)
            count += min(int(repeated[1]), 1000) if repeated else 1
        return count

    def _add_cells(
        self,
        number: int,
        line: str,
        mark: re.Pattern[str],
        separated: bool,
        cells: list[list[LineSpan]],
    ) -> None:
        """Append the cells of a line. Text before the first mark continues the last cell."""
        start, end = self.lines.span(number)
        position = 0
        begins = separated
        for found in [*mark.finditer(line), None]:
            stop = found.start() if found else end - start
            if begins:
                cells.append([(start + position, start + stop)])
            elif cells and line[position:stop].strip():
                item = _ITEM.match(line, position, stop)
                cells[-1].append((start + (item.end() if item else position), start + stop))
            if found:
                position, begins = found.end(), True

    def _find_marks(self, text: str) -> list[Replacement]:
        """The spans of inline markup that are not shown as they are, in order."""
        if not _MARKS.search(text):
            return []
        found: list[Replacement] = []
        brackets: list[bool] = []  # whether each open bracket belongs to a macro
        marks: list[tuple[int, int]] = []
        doubles: dict[str, int] = {}
        skip_to = 0  # behind the attributes of a macro
        for token in _TOKEN.finditer(text):
            start, end = token.span()
            kind = token.lastgroup
            if start < skip_to:
                continue
            if kind == "escaped":
                found.append((start, start + 1, ""))
            elif kind == "gone":
                found.append((start, end, ""))
            elif kind in ("passed", "index", "anchor", "label"):
                found += [(start, token.start(kind), ""), (token.end(kind), end, "")]
            elif kind in ("macro", "target", "url", "path"):
                shown = _macro_start(text, token)
                if shown[1] > end:
                    skip_to = shown[1]
                found.append(shown)
                brackets.append(True)
            elif kind == "open":
                brackets.append(False)
            elif kind == "close":
                if brackets and brackets.pop():
                    found.append((start, end, ""))
            elif kind == "attribute":
                name = token["attribute"].lower()
                if name in self._attributes:
                    found.append((start, end, self._attributes[name]))
                elif "-" in name:  # set in another file
                    found.append((start, end + text.startswith("/", end), ""))
            elif kind == "double":
                opened = doubles.pop(token[0], None)
                if opened is None:
                    doubles[token[0]] = start
                else:
                    found += [(opened, opened + end - start, ""), (start, end, "")]
            elif kind == "mark":
                marks.append((start, end))
        return sorted([*found, *paired_marks(text, marks)])


def _macro_start(text: str, token: re.Match[str]) -> Replacement:
    """
    The start of a macro up to its bracket is left out; a target without text is shown.

    `linkman:ups.conf[5]`, a macro of manual pages, is shown as `ups.conf(5)`.
    """
    start, end = token.span()
    if token["target"] and (section := _MAN_SECTION.match(text, end)):
        return start, section.end(), f"{token['target']}({section[0]})"
    if token["target"] is not None and (options := _MACRO_OPTIONS.match(text, end)):
        end = options.end()
    elif text[end : end + 1] != "]" or token["target"] is None:
        return start, end, ""
    return start, end, f"{token['url'] or ''}{token['target']}".removeprefix("mailto:")
