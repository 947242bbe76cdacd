"""
Read manual pages (roff with the man or mdoc macros) with exact offsets back into the source.

A term and the paragraph about it are one block. Displays without filling are code, and so is the
synopsis. Fonts, sizes and other escapes are removed. Macro definitions, conditions, comments and
equations are left out. A file without any section macro is read as plain text, because a suffix
such as `.1` is also used for other files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .document import Blocks, Content
from .kinds import BlockKind
from .markup import LineSpan, MarkupWriter, Replacement, SourceLines
from .offsets import TextBuilder, line_starts

__all__ = [
    "read_manpage",
]

_SECTION = re.compile(r"^[.'][ \t]*(?:SH|Sh|TH|Dt)\b", re.MULTILINE)
_REQUEST = re.compile(r"[.'][ \t]*(?P<name>[A-Za-z\\]\S*)?[ \t]*")
_ARGUMENT = re.compile(r'"(?P<quoted>(?:[^"]|"")*)"?|(?P<plain>(?:[^\s"\\]|\\.|(?<=\S)")+)')
_COMMENT = re.compile(r'(?<!\\)\\["#].*')
_TAB_OPTION = re.compile(r"tab\s*\((.)\)")
_BULLET = re.compile(r"(?:\\\(bu|\\\[bu\]|\\\(em|\\-|[•*o·-]|\(?\d{1,3}[.)]?|\\\(\w\w)\Z")

_FONTS = frozenset(("B", "I", "SM", "SB", "R", "CW", "C"))
_ALTERNATING = frozenset(("BR", "BI", "IR", "IB", "RB", "RI"))
_BREAKS = frozenset("PP P LP Pp sp br RE HP ti in ce Bl El UN Lp Ns Pf Rs Re Bk Ek an-trap".split())
_CODE_START = {"nf": "fi", "EX": "EE", "Vb": "Ve", "Bd": "Ed", "DS": "DE", "CS": "CE"}
_SKIPPED = {"ig": "..", "de": "..", "am": "..", "de1": "..", "EQ": ".EN", "PS": ".PE"}
_MDOC = frozenset(
    """Nm Fl Ar Op Cm Ic Pa Ev Va Vt Xr Em Sy Dv Li Sq Dq Ql Pq Qq No Nd Bq Brq Aq Oo Oc Ao Ac Bo
    Bc Do Dc Po Pc Qo Qc So Sc Xo Xc Fn Fa Ft Fo Fc In Er An Ad Lk Mt Tn Ux At Bx Fx Nx Ox Lb St
    Ms Sx Dl Cd Ns Pf Ap D1 Bsx Dx Eo Ec Es En Hf""".split()
)
_MDOC_DASH = "Fl"
_PUNCTUATION = frozenset(".,:;()[]?!|")
_SPECIAL = {
    "aq": "'", "dq": '"', "bu": "•", "em": "—", "en": "–", "hy": "-", "co": "©", "rg": "®",
    "tm": "™", "lq": "“", "rq": "”", "oq": "‘", "cq": "’", "bs": "\\", "rs": "\\", "sl": "/",
    "ti": "~", "ha": "^", "ga": "`", "ul": "_", "br": "|", "ba": "|", "mu": "×", "+-": "±",
    "<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "<-": "←", "mi": "-", "pl": "+", "eq": "=",
    "at": "@", "sh": "#", "Do": "$", "lB": "[", "rB": "]", "lC": "{", "rC": "}", "la": "<",
    "ra": ">", "de": "°", "sc": "§", "fm": "'", "Bq": "„", "Fo": "«", "Fc": "»", "ss": "ß",
    "L\"": "“", "R\"": "”", "--": "–",
}  # fmt: skip
_TOKEN = re.compile(
    r"""\\(?: f(?:\(..|\[[^\]]{0,30}\]|.)(?P<font>)
    | s(?:[-+]?\d{1,2}|\[[^\]]{0,9}\]|\([-+]?\d\d)(?P<size>)
    | \((?P<special>..) | \[(?P<named>[^\]]{1,30})\]
    | \*(?:\((?P<string>..)|\[(?P<long>[^\]]{1,30})\]|.)(?P<variable>)
    | [nkgFmMVY](?:\(..|\[[^\]]{0,30}\]|[-+]?.)(?P<register>)
    | [hvwlLDobxXNZ]'[^'\n]{0,200}'(?P<motion>)
    | (?P<space>[ ~0]) | (?P<minus>-) | (?P<backslash>[e\\]) | (?P<gone>[&|^%:/,cudrpz)!?\n{}t]|\Z)
    | (?P<other>.) )
    | (?<!["\w])""(?=\w)(?P<quote>) | (?<=[\w.?!)])""(?!["\w])(?P<end_quote>)
    | (?<=\w)``(?![\w`])(?P<ticks>)""",
    re.VERBOSE | re.DOTALL,
)


def read_manpage(source: str) -> Content:
    """Text, blocks and title, which is the name of the page."""
    if not _SECTION.search(source):
        blocks = Blocks()
        blocks.add(0, len(source), "text")
        return Content(source, blocks, "line", line_starts(source))
    reader = _ManReader(SourceLines(source))
    reader.read()
    return reader.writer.content()


class _ManReader:
    """Collects the pieces of a paragraph until a macro ends it."""

    def __init__(self, lines: SourceLines) -> None:
        self.lines = lines
        self.writer = MarkupWriter(lines, _find_marks)
        self._at = 0  # the current line
        self._block = TextBuilder()
        self._link: list[LineSpan] = []  # the address of the open link
        self._lines_before_link = 0
        self._state = ""  # "term" while a term is read, "terms" behind one, "heading", or ""
        self._level = 0  # of the last heading
        self._is_item = False  # whether the current block has a bullet
        self._synopsis = False
        self._line_count = 0  # of the current block
        self._is_marked = False  # whether it starts with an escape, as names of options do
        self._name: LineSpan | None = None  # the argument of the first .Nm

    def read(self) -> None:
        while self._at < len(self.lines):
            line = _COMMENT.sub("", self.lines.text(self._at))
            request = _REQUEST.match(line) if line[:1] in (".", "'") else None
            if request:
                self._handle_request(request["name"] or "", line, request.end())
            elif not line.strip():
                if self._state != "terms":
                    self._end_block()
            else:
                start = self.lines.starts[self._at]
                self._add_text([(start, start + len(line.rstrip()))])
            self._at += 1
        self._end_block()

    def _handle_request(self, name: str, line: str, column: int) -> None:
        start = self.lines.starts[self._at]
        arguments = [(start + a, start + b) for a, b in _arguments(line, column)]
        if name in ("TH", "Dt"):
            if arguments:
                self.writer.title = self.lines.source[slice(*arguments[0])]
        elif name in ("SH", "SS", "Sh", "Ss"):
            self._level = 1 if name in ("SH", "Sh") else 2
            self._start_heading(arguments)
        elif name in ("TP", "TQ"):
            if name == "TP" or self._state != "terms":
                self._end_block()
            self._state = "term"
        elif name in ("IP", "It"):
            self._start_item(name, arguments)
        elif name in _FONTS:
            self._add_text(arguments)
        elif name in _ALTERNATING:
            self._add_text(arguments, joined=True)
        elif name in _CODE_START:
            if name != "Bd" or "-literal" in line or "-unfilled" in line:
                self._read_code(_CODE_START[name])
            else:
                self._end_block()
        elif name in _SKIPPED:
            self._skip_to(_SKIPPED[name])
        elif name == "TS":
            self._read_table()
        elif name in ("if", "ie", "el", "while"):
            self._skip_condition(line)
        elif name in ("Dl", "D1"):
            self._add_display(arguments)
        elif name in _MDOC:
            self._add_mdoc(name, arguments)
        elif name in ("UR", "MT"):
            self._link, self._lines_before_link = arguments[:1], self._line_count
        elif name in ("UE", "ME"):
            if self._line_count == self._lines_before_link:  # the address has no other text
                self._add_text(self._link)
            self._add_text(arguments, attached=True)
            self._link = []
        elif name == "RS":
            self._start_indented()
        elif name in _BREAKS:
            self._end_block()

    def _start_indented(self) -> None:
        """An indented text explains the line above it if that is a single line with a mark."""
        if self._state == "terms" or (self._line_count == 1 and self._is_marked):
            self._state = "terms"
        else:
            self._end_block()

    def _add_display(self, arguments: list[LineSpan]) -> None:
        self._end_block()
        in_synopsis, self._synopsis = self._synopsis, True
        self._add_mdoc("No", arguments)
        self._end_block()
        self._synopsis = in_synopsis

    def _start_heading(self, arguments: list[LineSpan]) -> None:
        self._end_block()
        self._state = "heading"
        if arguments:
            self._add_text(arguments)

    def _start_item(self, name: str, arguments: list[LineSpan]) -> None:
        self._end_block()
        if name == "IP":
            arguments = arguments[:1]
        shown = " ".join(self.lines.source[start:end] for start, end in arguments)
        self._is_item = bool(_BULLET.match(shown))
        if shown and not self._is_item:
            self._state = "term"
            if name == "It":
                self._add_mdoc("No", arguments)
            else:
                self._add_text(arguments)
            self._state = "terms"

    def _add_text(
        self,
        spans: list[LineSpan],
        *,
        joined: bool = False,
        attached: bool = False,
        prefix: str = "",
    ) -> None:
        """
        Append the text of a line.

        `joined` leaves out the spaces between its arguments, `attached` the one before them.
        """
        first = True
        for start, end in spans:
            text = self.lines.source[start:end]
            if not joined or first:
                start += len(text) - len(text.lstrip())
                text = text.lstrip()
            text = text if joined else text.rstrip()
            if not text:
                continue
            if not self._block.length:
                self._line_count = 0
                self._is_marked = text.startswith("\\")
            elif not (attached if first else joined):
                self._add_space(start, first)
            if prefix:
                self._block.insert(prefix, start)
            first = False
            self._block.add(text, start, start + len(text))
        if first:
            return
        self._line_count += 1
        if self._state == "heading":
            self._end_block()
        elif self._state == "term":
            self._state = "terms"
        elif self._state == "terms":
            self._state = ""

    def _add_space(self, at: int, first: bool) -> None:
        separator = " "
        if first and self._state in ("terms", "term"):
            last = self._block.text()[-40:]
            colon = "" if last.rstrip().endswith((":", ",")) else ":"
            separator = f"{colon} " if self._state == "terms" else ", "
        end = self._block.segments.end(self._block.length)
        if separator == " ":
            self._block.add(" ", end, at)
        else:
            self._block.insert(separator, end)

    def _add_mdoc(self, name: str, arguments: list[LineSpan]) -> None:
        """Append the arguments of an mdoc macro without the names of other macros among them."""
        source = self.lines.source
        if name == "Nm":
            self._name = self._name or (arguments[0] if arguments else None)
            if not arguments and self._name:
                shown = source[slice(*self._name)]
                at = self.lines.span(self._at)
                self._add_inserted(shown, *at)
                return
        dash = name == _MDOC_DASH
        state = self._state
        for number, (start, end) in enumerate(arguments):
            word = source[start:end]
            if word in _MDOC and source[start - 1] != '"':
                dash = word == _MDOC_DASH
                continue
            attached = word in _PUNCTUATION and number > 0
            self._add_text([(start, end)], attached=attached, prefix="-" if dash else "")
            dash = False
            if state == "term":
                self._state = "" if number + 1 < len(arguments) else "terms"
        if state == "term":
            self._state = "terms"

    def _add_inserted(self, text: str, start: int, end: int) -> None:
        if self._block.length:
            self._add_space(start, True)
        self._block.add(text[:1], start, end)
        self._block.add(text[1:], end, end)
        self._state = "" if self._state == "terms" else self._state

    def _end_block(self) -> None:
        # A term that nothing explains is shown and is no answer.
        is_code = self._synopsis or self._state == "terms"
        kind: BlockKind = "code" if is_code else "text"
        if self._state == "heading" and self._block.length:
            kind = "heading"
            self._synopsis = "SYNOPSIS" in self._block.text().upper()
        elif self._block.text().startswith("$ "):
            kind = "code"
        if self._block.length:
            if kind == "text" and self._is_item:
                kind = "item"
            level = {"heading": self._level, "item": 1}.get(kind, 0)
            self.writer.add_joined(self._block, kind, level)
            self._is_item = False
            self._block = TextBuilder()
            self._state = ""
        elif self._state != "heading":
            self._state = ""

    def _read_code(self, closing: str) -> None:
        self._end_block()
        first = self._at + 1
        end = first
        while end < len(self.lines):
            request = _REQUEST.match(self.lines.text(end))
            if request and request["name"] in (closing, "SH", "Sh", "SS"):
                break
            end += 1
        self._add_code_lines(first, end)
        self._at = end if end < len(self.lines) and not self._is_section(end) else end - 1

    def _is_section(self, number: int) -> bool:
        request = _REQUEST.match(self.lines.text(number))
        return bool(request and request["name"] in ("SH", "Sh", "SS"))

    def _add_code_lines(self, first: int, last: int) -> None:
        """Append the lines of a display, without requests, as one code block."""
        block = TextBuilder()
        for number in range(first, last):
            line = self.lines.text(number)
            start, end = self.lines.span(number)
            request = _REQUEST.match(line) if line[:1] in (".", "'") else None
            if request:
                if request["name"] not in _FONTS and request["name"] not in _ALTERNATING:
                    continue
                start += request.end()
            if block.length:
                block.add("\n", block.segments.end(block.length), start)
            if end > start:
                block.add(self.lines.source[start:end], start, end)
        if block.text().strip():
            self.writer.add_joined(block, "code")

    def _skip_to(self, closing: str) -> None:
        self._at += 1
        while self._at < len(self.lines) and not self.lines.text(self._at).startswith(closing):
            self._at += 1

    def _skip_condition(self, line: str) -> None:
        """Move behind a conditional request and the lines in its braces."""
        depth = line.count("\\{") - line.count("\\}")
        while depth > 0 and self._at + 1 < len(self.lines):
            self._at += 1
            line = self.lines.text(self._at)
            depth += line.count("\\{") - line.count("\\}")

    def _read_table(self) -> None:
        """Read the rows of a table; its cells are separated by tabs or as its options say."""
        self._end_block()
        self._at += 1
        separator = _TAB_OPTION.search(self.lines.text(self._at))
        cell_pattern = re.compile(f"[^{re.escape(separator[1] if separator else chr(9))}]+")
        while self._at < len(self.lines) and not self.lines.text(self._at).rstrip().endswith("."):
            if self.lines.text(self._at).startswith(".TE"):
                return
            self._at += 1
        self._at += 1
        cells: list[list[LineSpan]] = []
        kind: BlockKind = "table"
        in_cell = False  # inside T{ and T}
        while self._at < len(self.lines) and not self.lines.text(self._at).startswith(".TE"):
            start = self.lines.starts[self._at]
            line = self.lines.text(self._at)
            self._at += 1
            if line.startswith((".", "'")) or not line.strip("_=- \t"):
                continue
            if not in_cell:
                cells = []
            continued = in_cell and not line.startswith("T}")
            for number, cell in enumerate(cell_pattern.finditer(line)):
                span = (start + cell.start(), start + cell.end())
                if continued or (number == 0 and in_cell):
                    if cells and cell[0] != "T}":
                        cells[-1].append(span)
                elif cell[0].rstrip() == "T{":
                    cells.append([])
                else:
                    cells.append([span])
            in_cell = continued or line.rstrip().endswith("T{")
            if not in_cell:
                self.writer.add_row([cell for cell in cells if cell], kind)
                kind = "row"


def _arguments(line: str, column: int) -> Iterator[LineSpan]:
    """The columns of the arguments of a request, without quotes."""
    for found in _ARGUMENT.finditer(line, column):
        span = found.span("quoted" if found["quoted"] is not None else "plain")
        if span[1] > span[0]:
            yield span


def _find_marks(text: str) -> list[Replacement]:
    """The escapes of a block and what is shown instead, in order."""
    if "\\" not in text and '""' not in text and "``" not in text:
        return []
    return [(*token.span(), _shown(token)) for token in _TOKEN.finditer(text)]


def _shown(token: re.Match[str]) -> str:
    kind = token.lastgroup
    if kind in ("special", "named"):
        name = token["special"] or token["named"]
        if name.startswith("u") and re.fullmatch(r"u[0-9A-F]{4,5}", name):
            return chr(int(name[1:], 16))
        return _SPECIAL.get(name, "")
    if kind in ("quote", "end_quote"):  # in quotes, a quote is written twice
        return '"'
    if kind == "variable":
        return _SPECIAL.get(token["string"] or token["long"] or "", "")
    if kind == "space":
        return " "
    if kind == "minus":
        return "-"
    if kind == "backslash":
        return "\\"
    return token["other"] if kind == "other" else ""
