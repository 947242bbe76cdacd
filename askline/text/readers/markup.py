"""
What the readers of markup share: lines, blocks made of lines, inline marks, and formulas.

The readers of line-oriented markup find blocks line by line and give the spans of their lines to a
`MarkupWriter`, which joins the lines with single spaces, removes the inline marks, and keeps the
way back to the source. `plain_formula` shows formulas of TeX, which many formats contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from .document import Blocks, Content
from .kinds import QUESTION_LEVEL, BlockKind
from .offsets import TextBuilder, line_starts

__all__ = [
    "LineSpan",
    "MarkupWriter",
    "Replacement",
    "SourceLines",
    "paired_marks",
    "plain_formula",
]

LineSpan = tuple[int, int]
"""Start and end in the source, without the line end."""
Replacement = tuple[int, int, str]
"""Start, end, and the text to show instead."""
FindMarks = Callable[[str], Iterable[Replacement]]

_BOLD_LINE = re.compile(r"(?P<mark>\*{1,2})(?=\S)[^*]{2,200}(?<=[^\s.!,;:])(?P=mark)\s*\Z")
_LITERAL = re.compile(
    r"(?P<mark>``?|\+\+?|[=~])(?=\S)(?![^\n]{0,300}?(?P=mark)[\s,;:.)])"
    r"(?=[^`\n]*[^\s`] [^\s`])[^`\n]{3,300}(?P=mark)"
)
"""A block that is one literal of several words: a command or a line of a file."""
_CAPTION = re.compile(r"(?:table|figure|fig\.|example|listing)\s*[\dA-Z]", re.IGNORECASE)
_MAX_BOLD_CHARACTERS = 200
_TERM_END = re.compile(r"[:;,.!?—–-]\Z")


class SourceLines:
    """The lines of a source by number, starting at 0; `starts` has their offsets."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.starts = line_starts(source)

    def __len__(self) -> int:
        return len(self.starts)

    def span(self, number: int) -> LineSpan:
        """The span of a line without its line end."""
        start = self.starts[number]
        if number + 1 == len(self.starts):
            return start, len(self.source)
        end = self.starts[number + 1] - 1
        return start, end - (end > start and self.source[end - 1 : end + 1] == "\r\n")

    def text(self, number: int) -> str:
        """A line without its line end; empty if there is no such line."""
        if not 0 <= number < len(self.starts):
            return ""
        start, end = self.span(number)
        return self.source[start:end]

    def indent(self, number: int) -> int:
        """The number of white-space characters at the start of a line."""
        line = self.text(number)
        return len(line) - len(line.lstrip())

    def is_blank(self, number: int) -> bool:
        """Whether a line has only white space."""
        return not self.text(number).strip()


class MarkupWriter:
    """
    Collects the blocks of a document. Each format passes its own `find_marks`.

    `find_marks` receives the text of a block and returns the spans that are not shown as they are,
    in order and without overlaps.
    """

    def __init__(self, lines: SourceLines, find_marks: FindMarks) -> None:
        self.blocks = Blocks()
        self.title = ""
        self._lines = lines
        self._find_marks = find_marks
        self._builder = TextBuilder()

    def add(self, spans: Iterable[LineSpan], kind: BlockKind = "text", level: int = 0) -> None:
        """
        Append a block of lines. The first heading is the title unless there is one.

        `level` is that of a heading or a list item, from 1.
        """
        block = TextBuilder()
        self._join(block, spans)
        if kind in ("text", "item") and _LITERAL.fullmatch(block.text()):
            kind, level = "code", 0
        if kind == "text" and block.length <= _MAX_BOLD_CHARACTERS and self._is_bold(block.text()):
            kind, level = "heading", QUESTION_LEVEL
        start = self._builder.length
        self._write(block)
        self._end_block(start, kind, level)
        if kind == "heading" and not self.title and self._builder.length > start:
            self.title = self.visible(block.text())

    def add_definition(
        self,
        terms: Sequence[LineSpan],
        spans: Iterable[LineSpan],
        kind: BlockKind = "text",
        level: int = 0,
    ) -> None:
        """
        Append terms and what they mean as one block: `term, term: meaning`.

        A term that is a question is a heading of its answer.
        """
        if terms and self.visible(self._lines.source[slice(*terms[-1])]).endswith("?"):
            self.add(terms, "heading", QUESTION_LEVEL)
            self.add(spans, kind, level)
            return
        start = self._builder.length
        for number, term in enumerate(terms):
            if number and self._builder.length > start:
                comma = self._lines.source.endswith(",", 0, terms[number - 1][1])
                self._builder.insert(" " if comma else ", ", term[0])
            block = TextBuilder()
            self._join(block, [term])
            self._write(block)
        body = TextBuilder()
        self._join(body, spans)
        text = body.text()
        shown = self.visible(text)
        if self._builder.length > start and shown:
            last = self.visible(self._lines.source[terms[-1][0] : terms[-1][1]])
            self._builder.insert(" " if _TERM_END.search(last) else ": ", terms[-1][1])
        self._write(body)
        self._end_block(start, kind, level)

    def add_joined(self, block: TextBuilder, kind: BlockKind = "text", level: int = 0) -> None:
        """Append a block whose lines the caller has joined."""
        start = self._builder.length
        self._write(block)
        self._end_block(start, kind, level)

    def add_code(self, first: int, last: int) -> None:
        """Append the lines `first` to `last - 1` as they are, without blank lines at the ends."""
        while first < last and self._lines.is_blank(last - 1):
            last -= 1
        while first < last and self._lines.is_blank(first):
            first += 1
        if first < last:
            self.add_code_span(self._lines.span(first)[0], self._lines.span(last - 1)[1])

    def add_code_span(self, begin: int, end: int) -> None:
        """Append `source[begin:end]` as it is."""
        start = self._builder.length
        self._builder.add(self._lines.source[begin:end], begin, end)
        self._end_block(start, "code")

    def add_row(self, cells: Iterable[Sequence[LineSpan]], kind: BlockKind) -> None:
        """
        Append a table row. `kind` is that of its first cell: `row`, `table` or `columns`.

        If its cells stand side by side over several lines, the row as a whole is mapped to its
        lines, because the map must be monotone.
        """
        row = [cell for cell in cells if any(end > start for start, end in cell)]
        spans = [span for cell in row for span in cell]
        whole = None if spans == sorted(spans) else (min(spans)[0], max(end for _, end in spans))
        blocks = len(self.blocks)
        for cell in row:
            cell_kind = kind if len(self.blocks) == blocks else "cell"
            if whole is None:
                self.add(cell, cell_kind)
                continue
            joined = " ".join(self._lines.source[start:end].strip() for start, end in cell)
            text = self.visible(joined)
            start = self._builder.length
            at = whole[0] if len(self.blocks) == blocks else whole[1]
            self._builder.add(text[:1], at, whole[1])
            self._builder.add(text[1:], whole[1], whole[1])
            self._end_block(start, cell_kind)

    def visible(self, text: str) -> str:
        """The text without inline marks and with single spaces."""
        shown = []
        position = 0
        for start, end, replacement in self._find_marks(text):
            shown += [text[position:start], replacement]
            position = end
        return " ".join("".join([*shown, text[position:]]).split())

    def content(self) -> Content:
        """The whole document."""
        return Content(
            self._builder.text(),
            self.blocks,
            "line",
            self._lines.starts,
            self.title,
            self._builder.segments,
        )

    @staticmethod
    def _is_bold(text: str) -> bool:
        """Whether a block is one line in bold type that is not a sentence."""
        found = _BOLD_LINE.match(text)
        return bool(found) and not _CAPTION.match(text, found.end("mark") if found else 0)

    def _join(self, block: TextBuilder, spans: Iterable[LineSpan]) -> None:
        """Append lines without white space at either end, joined by single spaces."""
        for start, end in spans:
            line = self._lines.source[start:end]
            bare = line.strip()
            if not bare:
                continue
            start += len(line) - len(line.lstrip())
            if block.length:
                block.add(" ", block.segments.end(block.length), start)
            block.add(bare, start, start + len(bare))

    def _write(self, block: TextBuilder) -> None:
        text = block.text()
        position = 0
        for start, end, replacement in (*self._find_marks(text), (len(text), len(text), "")):
            self._copy(block, text, position, start)
            if replacement:
                # The first character stands for the whole span, so that no two spans overlap.
                left, right = block.segments.span(start, end)
                self._builder.add(replacement[0], left, right)
                self._builder.add(replacement[1:], right, right)
            position = end

    def _copy(self, block: TextBuilder, text: str, start: int, end: int) -> None:
        """Copy a piece of a block; each join of two lines is a piece of its own."""
        for first, last, left, right in block.segments.pieces(start, end):
            self._builder.add(text[first:last], left, right)

    def _end_block(self, start: int, kind: BlockKind, level: int = 0) -> None:
        if self._builder.length > start:
            self.blocks.add(start, self._builder.length, kind, level)
            at = self._builder.segments.end(self._builder.length)
            self._builder.insert("\n", at)


def paired_marks(text: str, marks: Iterable[tuple[int, int]]) -> list[Replacement]:
    """
    The marks that enclose a phrase, to be left out; all others are text.

    `marks` has the spans of runs of equal characters in order. A mark opens a phrase if it follows
    white space or punctuation and touches what comes after it, and closes one the other way round.
    Equal marks pair with the nearest open one, so that the time is linear.
    """
    found: list[Replacement] = []
    waiting: dict[str, tuple[int, int]] = {}
    for start, end in marks:
        mark = text[start:end]
        before, after = text[start - 1 : start], text[end : end + 1]
        if mark == "/" and waiting.get(mark, (0, -1))[1] == start:
            del waiting[mark]  # `//` of an address
        elif mark in waiting and before.strip() and not (after.isalnum() or after == "_"):
            opened = waiting.pop(mark)
            found += [(*opened, ""), (start, end, "")]
            if mark[0] == "`":  # what is open inside a literal is a character of it
                waiting = {each: span for each, span in waiting.items() if span < opened}
        elif after.strip() and not (before.isalnum() or before == "_"):
            waiting[mark] = (start, end)
    return sorted(found)


_FORMULA_TOKEN = re.compile(r"\\(?P<name>[A-Za-z]+)\s*|\\(?P<symbol>.)|[{}]|\s+|&", re.DOTALL)
_GREEK = dict(
    zip(
        """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho
        sigma tau upsilon phi chi psi omega""".split(),
        "αβγδεζηθικλμνξοπρστυφχψω",
        strict=True,
    )
)
_FORMULA_SYMBOLS = {
    **_GREEK,
    **{name.capitalize(): letter.upper() for name, letter in _GREEK.items()},
    "varepsilon": "ε", "vartheta": "θ", "varphi": "φ", "cdot": "·", "times": "×", "div": "÷",
    "pm": "±", "mp": "∓", "ge": "≥", "geq": "≥", "le": "≤", "leq": "≤", "ne": "≠", "neq": "≠",
    "ll": "≪", "gg": "≫", "approx": "≈", "sim": "~", "simeq": "≃", "equiv": "≡", "propto": "∝",
    "infty": "∞", "partial": "∂", "nabla": "∇", "sum": "∑", "prod": "∏", "int": "∫", "sqrt": "√",
    "in": "∈", "notin": "∉", "subset": "⊂", "cup": "∪", "cap": "∩", "forall": "∀", "exists": "∃",
    "to": "→", "rightarrow": "→", "leftarrow": "←", "Rightarrow": "⇒", "mapsto": "↦", "odot": "⊙",
    "circ": "°", "prime": "′", "ldots": "…", "dots": "…", "cdots": "…", "degree": "°", "star": "*",
    "ast": "*", "langle": "⟨", "rangle": "⟩", "mid": "|", "vert": "|", "quad": " ", "qquad": " ",
    "land": "∧", "lor": "∨", "neg": "¬", "ell": "ℓ", "hbar": "ħ", "lt": "<", "gt": ">",
}  # fmt: skip
_LEFT_OUT = frozenset(
    """rm bf it sf tt cal mathrm mathbf mathit mathsf mathtt mathcal mathbb text textrm textit
    textbf textsf texttt mbox operatorname left right big Big bigg Bigg displaystyle textstyle
    limits boldsymbol bm hat bar vec tilde overline underline mathring ensuremath""".split()
)
_FRACTIONS = frozenset(("frac", "dfrac", "tfrac", "cfrac"))
_SPACES = frozenset(",;: >")
_SHOWN = frozenset("{}%$#&_|")


def plain_formula(formula: str) -> str:
    """
    A formula of TeX as plain text: `2^{22} \\ge N` is shown as `2^22 ≥ N`.

    Symbols that are commands become characters, fractions become quotients, and braces, fonts and
    spacing commands are left out. A formula is never evaluated or laid out. The time is linear in
    its length.
    """
    shown: list[str] = []
    groups: list[str] = []  # what is shown behind each closing brace
    position = 0
    waiting = 0  # arguments of a fraction that are still to come
    for token in _FORMULA_TOKEN.finditer(formula):
        shown.append(formula[position : token.start()])
        position = token.end()
        name, symbol = token["name"], token["symbol"]
        if name is not None:
            if name in _FRACTIONS:
                waiting = 1
            elif name not in _LEFT_OUT:
                shown.append(_FORMULA_SYMBOLS.get(name) or f"{name} ")
                if name in _FORMULA_SYMBOLS and token[0][-1].isspace():
                    shown.append(" ")
        elif symbol is not None:
            shown.append(symbol if symbol in _SHOWN else " " if symbol in _SPACES else "")
        elif token[0] == "{":
            groups.append("/" if waiting else "")
            waiting = 0
        elif token[0] == "}":
            shown.append(groups.pop() if groups else "")
        else:
            shown.append(" ")
    shown.append(formula[position:])
    return " ".join("".join(shown).replace("...", "…").split())
