"""
Read LaTeX with exact offsets back into the source.

One regular expression cuts the source into commands, braces, comments, mathematics and text.
Commands are removed, and their arguments are text unless the command is known to take something
else. Verbatim environments are code, formulas inside a paragraph are shown as plain text, and
displayed formulas, pictures, comments and the preamble are left out. A description item is joined
with its text.
"""

from __future__ import annotations

import re
import unicodedata

from .document import Blocks, Content
from .kinds import BlockKind
from .markup import plain_formula
from .offsets import TextBuilder, line_starts

__all__ = [
    "read_latex",
]

_TOKEN = re.compile(
    r"""[\\%{}\[\]$~&\s`'-] (?:
      (?<=%) (?P<comment> [^\n]* (?:\n[ \t]*)? )
    | (?<=\\) (?:
        verb\*?(?P<delimiter>[^\sA-Za-z*])(?P<verb>[^\n]{0,500}?)(?P=delimiter)
      | begin\s*\{(?P<begin>[A-Za-z]+\*?)\}
      | end\s*\{(?P<end>[A-Za-z]+\*?)\}
      | (?P<accent>['`^"~=.]|[cvuHrk](?=\{))\{?(?P<letter>\\?[A-Za-z])\}?
      | (?P<name>[A-Za-z@]+)\*?
      | \((?P<formula>.{1,1000}?)\\\)
      | \[(?P<display>.*?)(?:\\\]|\Z)
      | (?P<line>\\)\*?(?:\[[^\]\n]{0,40}\])?
      | (?P<symbol>.)
      )
    | (?<=\$) (?: \$(?P<displayed>[^$]*)(?:\$\$|\Z) | (?P<inline>[^$]{1,1000})\$ )
    | (?<=\s)(?P<space>\s*)
    | (?<=`)(?P<quote>`) | (?<=')(?P<unquote>') | (?<=-)(?P<dash>--?)
    )?""",
    re.VERBOSE | re.DOTALL,
)
_FORMULA_MARKS = re.compile(r"[\\{}&]")
_MACRO = re.compile(
    r"\\(?:re|provide)?newcommand\*?[ \t]{0,9}\{?\\(?P<name>[A-Za-z]{1,40})\}?[ \t]{0,9}"
    r"\{(?P<body>[^{}#\n]{1,100})\}"
)
"""The definition of a command without arguments that stands for a short text."""
_SIZE = re.compile(r"\{[-.\d]{1,9}(?:[a-z]{2}|\\[a-z]{1,20})?\}")  # the argument of an environment
_GROUP_START = re.compile(r"[ \t]*(?:\n[ \t]*)?(?P<mark>[\[{])")
_BRACKET = re.compile(r"\\.|[{}\[\]]", re.DOTALL)
_TITLE = re.compile(r"\\title\s*(?:\[[^\[\]]*\]\s*)?\{")
_DOCUMENT = re.compile(r"\\begin\s*\{document\}")

_HEADINGS = {
    "part": 1,
    "chapter": 2,
    "section": 3,
    "subsection": 4,
    "frametitle": 5,
    "subsubsection": 5,
    "paragraph": 6,
    "subparagraph": 7,
}
_CODE = frozenset("verbatim Verbatim lstlisting minted alltt code BVerbatim".split())
_DROPPED = frozenset(
    """displaymath math tikzpicture picture comment filecontents pgfpicture asy CCSXML
    thebibliography tikzcd xymatrix prooftree mathpar""".split()
)
_MATH = re.compile(r"equation|align|multline|gather|eqnarray")
_LISTS = frozenset("itemize enumerate description compactitem compactenum inparaenum".split())
_TABLES = frozenset("tabular tabularx tabulary longtable tabu supertabular".split())
_DROPPED_ARGUMENTS = frozenset(
    """label cite citep citet citealp citeauthor citeyear nocite parencite textcite
    footcite autocite index indexdef indexsee vspace hspace
    includegraphics input include usepackage documentclass bibliography bibliographystyle
    setcounter addtocounter newcommand renewcommand providecommand newenvironment
    renewenvironment newtheorem DeclareMathOperator def let setlength addtolength pagestyle
    thispagestyle pagenumbering hypersetup lstset definecolor color rule raisebox hyphenation
    addcontentsline markboth markright hypertarget phantomsection graphicspath geometry
    includeonly bibitem cline cmidrule rowcolor cellcolor columncolor multirow arraystretch
    newcounter author date thanks affiliation institute title inst email address keywords
    symlabel glossary gls defineshorthand opt sindex lipsum""".split()
)
_REFERENCES = frozenset("ref eqref pageref cref Cref autoref nameref vref".split())
_LABEL = re.compile(r"\*?\{(?:[^{}:]*:)?(?P<name>[^{}:]+)\}")
_DROPPED_FIRST = {"href": 1, "textcolor": 1, "colorbox": 1, "multicolumn": 2, "parbox": 1}
_DROPPED_FIRST |= {
    "resizebox": 2,
    "scalebox": 1,
    "hyperlink": 1,
    "fontsize": 2,
    "texorpdfstring": 1,
}
_WORDS = {
    "LaTeX": "LaTeX", "TeX": "TeX", "ldots": "…", "dots": "…", "textellipsis": "…", "ss": "ß",
    "o": "ø", "O": "Ø", "ae": "æ", "AE": "Æ", "aa": "å", "AA": "Å", "oe": "œ", "OE": "Œ", "l": "ł",
    "L": "Ł", "i": "ı", "S": "§", "P": "¶", "copyright": "©", "pounds": "£", "textbackslash": "\\",
    "textasciitilde": "~", "textasciicircum": "^", "textbar": "|", "textless": "<",
    "textgreater": ">", "textunderscore": "_", "textendash": "–", "textemdash": "—",
    "textquotesingle": "'", "quad": " ", "qquad": " ", "newline": " ", "space": " ",
    "textdegree": "°", "euro": "€", "texteuro": "€", "ie": "i.e.", "eg": "e.g.",
}  # fmt: skip
_SYMBOLS = {" ": " ", ",": " ", ";": " ", ":": " ", "\n": " ", "-": "", "/": "", "!": "", "@": ""}
_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304",
    ".": "\u0307", "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "r": "\u030a",
    "k": "\u0328",
}  # fmt: skip
_HEADER_RULES = frozenset(("hline", "midrule"))


def read_latex(source: str) -> Content:
    """Text, blocks and title, which is that of `\\title` or else the first heading."""
    document = _DOCUMENT.search(source)
    reader = _LatexReader(source)
    reader.read(document.end() if document else 0, len(source))
    title = _TITLE.search(source)
    if title:
        end = _group_end(source, title.end() - 1)
        inner = _LatexReader(source)
        inner.read(title.end(), end - 1)
        reader.title = " ".join(inner.builder.text().split()) or reader.title
    starts = line_starts(source)
    builder = reader.builder
    return Content(builder.text(), reader.blocks, "line", starts, reader.title, builder.segments)


class _LatexReader:
    """The state while a document is read."""

    def __init__(self, source: str) -> None:
        self.builder = TextBuilder()
        self.blocks = Blocks()
        self.title = ""
        self._source = source
        self._macros = {
            found["name"]: plain_formula(found["body"].replace("$", "{}").replace("~", " "))
            for found in _MACRO.finditer(source)
        }
        self._start = 0  # of the current block in the text
        self._kind: BlockKind = "text"
        self._level = 0  # of a heading
        self._after_space = True
        self._groups: list[str] = []  # what closes at each closing brace: a heading, a note or ""
        self._term = False  # inside the brackets of a description item
        self._lists = 0  # that are open
        self._tables = 0
        self._rows = 0  # of the current table
        self._row_start = -1  # the block that the current row starts with
        self._first_row = -1  # the block that the current table starts with

    def read(self, position: int, end: int) -> None:
        while position < end:
            token = _TOKEN.search(self._source, position, end)
            if not token:
                self._add(self._source[position:end], position, end)
                break
            if token.start() > position:
                self._add(self._source[position : token.start()], position, token.start())
            position = self._handle(token)
        self._end_block(end)

    def _add(self, text: str, start: int, end: int) -> None:
        """Append text for a span of the source; white space at the start of a block is ignored."""
        if self._after_space and text == " ":
            return
        if text:
            # If it is not a copy, its first character stands for the span, so that none overlap.
            first_end = start + 1 if len(text) == end - start else end
            self.builder.add(text[0], start, first_end)
            self.builder.add(text[1:], first_end, end)
            self._after_space = text[-1].isspace()

    def _end_block(self, at: int) -> None:
        if self.builder.length > self._start:
            kind = self._kind
            if kind == "text" and self._tables:
                kind = "cell" if self._row_start >= 0 else "row" if self._rows else "table"
                if kind != "cell":
                    self._row_start = len(self.blocks)
                    self._first_row = self._row_start if kind == "table" else self._first_row
            if kind == "text" and self._lists:
                kind = "item"
            level = {"heading": self._level, "item": self._lists}.get(kind, 0)
            self.blocks.add(self._start, self.builder.length, kind, level)
            self.builder.insert("\n", at)
        self._start = self.builder.length
        self._after_space = True

    def _end_row(self, at: int) -> None:
        self._end_block(at)
        if self._row_start >= 0:
            self._rows += 1
        self._row_start = -1

    def _handle(self, token: re.Match[str]) -> int:
        """Handle a token and return the position behind it."""
        start, end = token.span()
        kind = token.lastgroup
        if kind == "name":
            return self._handle_command(token["name"], start, end)
        if kind == "begin":
            return self._begin(token["begin"].rstrip("*"), start, end)
        if kind == "end":
            return self._end(token["end"].rstrip("*"), start, end)
        if kind == "space":
            if token[0].count("\n") > 1 and not self._tables:
                self._end_block(start)
            else:
                self._add(" ", start, end)
        elif kind == "verb":
            self._add(token[kind], *token.span(kind))
        elif kind in ("formula", "inline"):
            formula = token[kind]
            shown = plain_formula(formula) if _FORMULA_MARKS.search(formula) else formula
            self._add(shown, *token.span(kind))
        elif kind in ("display", "displayed"):
            self._drop_formula(token[kind], start, end)
        elif kind == "line":
            if self._tables:
                self._end_row(start)
            else:
                self._add(" ", start, end)
        elif kind == "letter":
            letter = token["letter"].lstrip("\\")
            accent = _ACCENTS[token["accent"]]
            self._add(unicodedata.normalize("NFC", letter + accent), start, end)
        elif kind == "symbol":
            self._add(_SYMBOLS.get(token["symbol"], token["symbol"]), start, end)
        elif kind in ("quote", "unquote", "dash"):
            shown = {"``": "“", "''": "”", "--": "–", "---": "—"}[token[0]]
            self._add(shown, start, end)
        elif kind is None:
            self._handle_character(token[0], start, end)
        return end

    def _drop_formula(self, formula: str, start: int, end: int) -> None:
        """Leave out a displayed formula, but keep the full stop that ends it and its sentence."""
        if formula.rstrip("} \t\r\n").endswith(".") and self.builder.length > self._start:
            self.builder.insert(".", start)
            self._after_space = False
        self._add(" ", start, end)

    def _handle_character(self, character: str, start: int, end: int) -> None:
        if character == "{":
            self._groups.append("")
        elif character == "}":
            self._close_group(start)
        elif character == "~":
            self._add(" ", start, end)
        elif character == "&" and self._tables:
            self._end_block(start)
        elif character == "]" and self._term:
            self._term = False
            self.builder.insert(": ", start)
            self._after_space = True
        elif character.isspace():
            self._add(" ", start, end)
        elif character not in "\\%":
            self._add(character, start, end)

    def _close_group(self, at: int) -> None:
        closed = self._groups.pop() if self._groups else ""
        if closed == "heading":
            start = self._start
            self._end_block(at)
            self._kind = "text"
            if not self.title and self.builder.length > start:
                self.title = " ".join(self.builder.text()[start:].split())
        elif closed == "note":
            self.builder.insert(")", at)
            self._after_space = False

    def _handle_command(self, name: str, start: int, end: int) -> int:
        if name in _HEADINGS or name in ("caption", "footnote"):
            return self._open_group(name, start, self._skip_options(end))
        if name in _DROPPED_ARGUMENTS:
            return self._skip_groups(end, 9)
        if name in _REFERENCES and (label := _LABEL.match(self._source, end)):
            self._add(label["name"], *label.span("name"))  # instead of its number
            return label.end()
        if name in _DROPPED_FIRST:
            return self._skip_groups(end, _DROPPED_FIRST[name])
        if name == "item":
            self._end_block(start)
            if self._source.startswith("[", end):
                self._term = True
                return end + 1
        elif name == "par":
            self._end_block(start)
        elif name in _HEADER_RULES and self._rows == 1 and self._first_row >= 0:
            self.blocks.mark_header(self._first_row)
            self._first_row = -1
        elif name in _WORDS:
            self._add(_WORDS[name], start, end)
            return end
        elif name in self._macros:
            self._add(self._macros[name], start, end)
        elif name == "tabularnewline":
            self._end_row(start)
        else:
            return self._skip_options(end)
        return end

    def _open_group(self, name: str, start: int, end: int) -> int:
        """Handle a command whose argument is a block of its own or a note in brackets."""
        brace = _GROUP_START.match(self._source, end)
        if not brace or brace["mark"] != "{":
            return end
        if name == "footnote":
            self.builder.insert(" (", start)
            self._after_space = True
            self._groups.append("note")
        else:
            self._end_block(start)
            self._kind = "text" if name == "caption" else "heading"
            self._level = _HEADINGS.get(name, 0)
            self._groups.append("heading" if name != "caption" else "")
        return brace.end()

    def _begin(self, name: str, start: int, end: int) -> int:
        if name in _CODE or name in _DROPPED or _MATH.search(name):
            if name in _CODE:
                self._end_block(start)
            closing = re.compile(rf"\\end\s*\{{{name}\*?\}}").search(self._source, end)
            stop = closing.start() if closing else len(self._source)
            if name in _CODE:
                self._add_code(self._skip_groups(end, 2), stop)
            else:
                self._drop_formula(self._source[max(end, stop - 100) : stop], start, stop)
            return closing.end() if closing else stop
        self._end_block(start)
        if name in _LISTS:
            self._lists += 1
        if name in _TABLES:
            self._tables += 1
            self._rows, self._row_start, self._first_row = 0, -1, -1
            return self._skip_groups(end, 3)
        end = self._skip_options(end)
        size = _SIZE.match(self._source, end)
        return size.end() if size else end

    def _add_code(self, first: int, last: int) -> None:
        code = self._source[first:last]
        first += len(code) - len(code.lstrip("\r\n"))
        last -= len(code) - len(code.rstrip())
        if last > first:
            self.builder.add(self._source[first:last], first, last)
            self.blocks.add(self._start, self.builder.length, "code")
            self.builder.insert("\n", last)
        self._start = self.builder.length

    def _end(self, name: str, start: int, end: int) -> int:
        if name in _TABLES and self._tables:
            self._end_row(start)
            self._tables -= 1
        elif name == "document":
            self._end_block(start)
            return len(self._source)
        else:
            self._end_block(start)
            if name in _LISTS and self._lists:
                self._lists -= 1
        self._term = False
        return end

    def _skip_options(self, end: int) -> int:
        """The position behind arguments in brackets that follow directly."""
        while self._source.startswith("[", end):
            end = _group_end(self._source, end)
        return end

    def _skip_groups(self, end: int, braces: int) -> int:
        """The position behind arguments in brackets and at most so many in braces."""
        while found := _GROUP_START.match(self._source, end):
            if found["mark"] == "{":
                if not braces:
                    break
                braces -= 1
            end = _group_end(self._source, found.end() - 1)
        return end


def _group_end(source: str, start: int) -> int:
    """The position behind the group that opens at `start`; an open group ends with a paragraph."""
    opening = source[start]
    closing = "}" if opening == "{" else "]"
    limit = source.find("\n\n", start)
    limit = len(source) if limit < 0 or opening == "{" else limit
    depth = 0
    for bracket in _BRACKET.finditer(source, start, limit):
        if bracket[0] == opening:
            depth += 1
        elif bracket[0] == closing:
            depth -= 1
            if depth == 0:
                return bracket.end()
    return limit
