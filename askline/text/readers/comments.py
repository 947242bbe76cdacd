"""
Comments as text: paragraphs of the lines of a comment, without code and decoration.

Left out are examples of code, code that was commented out, lines of punctuation, and directives for
tools such as linters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .markup import LineSpan, plain_formula
from .records import Piece

__all__ = [
    "comment_paragraphs",
    "joined_pieces",
]

_LETTER = re.compile(r"[^\W_]")
_WORDS = re.compile(
    r"(?<![^\W\d_])[^\W\d_]{2,}[^\w/\\.]+(?:\w+\W+){0,3}?[^\W\d_]{2,}|[\u3040-\u9fff]{4}"
)
_PROSE = re.compile(r"(?:\b[^\W\d_]{2,}[,.]?\s+){4}|\{@")
_SECTION = re.compile(
    r"(?:Args|Arguments|Parameters|Params|Other Parameters|Keyword Args|Returns?|Raises|Yields"
    r"|Examples?|Notes?|Attributes|See Also|References|Warns|Usage|Inputs?|Outputs?):?",
    re.IGNORECASE,
)
"""The name of a section of a docstring."""
_BANNER = re.compile(r"[A-Z]{2,20}(?:[ /&-]+[A-Z]{2,20}){0,3}:?")
"""The name of a part of the file: `PUBLIC API`."""
_PARAMETER = re.compile(r"\*{0,2}[\w.]+(?:,\s\*{0,2}\w+){0,5}(?:\s?\([^()]*\))?\s{0,20}:\s")
_DIRECTIVE = re.compile(
    r"""(?:!/|[@\#]__\w+__|\.\.\s+(?:_[^:]*:|[\w-]+::)
    |eslint|jshint|jslint|tslint|prettier|istanbul|c8\s|webpack|@ts-|ts-ignore|flow(?:-|\Z)
    |@flow|noqa|type:|pylint|pyright|mypy|flake8|ruff|isort|fmt:|yapf|pragma|nolint|go:|\+build
    |rubocop|shellcheck|clang-format|NOLINT|nosec|nosonar|vim?:|-\*-|coding[:=]|language=|region\b
    |endregion\b|\#?(?:region|endregion)\b|sourceMappingURL|@formatter|swiftlint|ktlint|phpcs
    |phpstan|psalm|@codeCoverage|eof\Z|end\s+of\s+file|spdx-|frozen_string_literal)""",
    re.VERBOSE | re.IGNORECASE,
)
_CODE = re.compile(
    r"""[{}(\[;]\s*\Z
    | \A(?:\}|\)|\{|</?\w(?:.*>|[^>]*)\Z|>>>|\$\s|\#\s*(?:include|define|ifdef|endif)\b)
    | \A(?:import|from|return|const|let|var|if|for|while|elif|def|function)\b.*\w[(\[].*[)\]]:?\Z
    | \A[\w.\[\]"'-]+\s*(?:=|\+=|:=|->|=>)\s*\S+\s*,?\Z
    | \A[\w.\[\]-]+:\s*[\w.\[\]"'-]+\Z | \A[\w.]+\([^()]*\);?\Z
    | \A[\w.\[\]"']+\s*[+-]?=\s*["'\w./\[\]]+\(.*\)\Z | \A(?:self|cls|this)\.\w+[.(\[]
    | \A(?:if|while|elif)\b(?=[^.]*[=<>_(])[^.]*:\Z | \A(?:raise|print|assert)\b[ (].*\)\Z
    | \A["'(\[].*["')\]]\s*:\s*[\w("'\[].*,\Z""",
    re.VERBOSE,
)
_EXAMPLE_TAG = re.compile(r"(?P<tag>[@\\](?:example|code|verbatim)\b)|\.\. (?:code|code-block)::")
_ANY_TAG = re.compile(r"[@\\][a-z]+\b")
_FENCE = re.compile(r"(?:```|~~~)")
_ITEM = re.compile(r"[-*+•][ \t]+|\.\.[ \t]+(?=\[\w)|(?=\d{1,3}[.)][ \t])")
_TAG = re.compile(
    r"""[@\\](?:param(?:\[\w+(?:,\w+)?\])?|tparam|arg|argument|property|prop|returns?|result|throws?
    |exception|brief|short|details?|note|remarks?|warning|deprecated|since|summary|description|desc
    |typeparam|retval|todo|pre|post|attention|par)\b[ \t]*(?:\{[^{}]*\}[ \t]*)?
    | \.\.[ \t]+(?:note|warning|tip|hint|important|caution|attention|danger|error|seealso|todo
        |(?:deprecated|versionadded|versionchanged)::[ \t]*[\w.]+)(?:::)?[ \t]+(?=\S)""",
    re.VERBOSE,
)
_DROPPED_TAG = re.compile(
    r"[@\\](?:author|version|see|link|copyright|license|file|package|module|namespace|memberof|class"
    r"|constructor|private|public|protected|internal|static|abstract|override|inheritdoc|type"
    r"|typedef|access|default|example|code|endcode|verbatim|endverbatim|ingroup|defgroup|name|kind"
    r"|extends|implements|api|hide|suppress\w*|category|group|template|export|exports)\b"
)
_FIELD = re.compile(
    r":(?:(?:param|arg|raises?|var|ivar|cvar|key|keyword)[ \t]+(?=[^:]+:)"
    r"|(?=(?:returns?|yields?):))"
)
"""The start of a field such as `:param name: meaning`, which is shown as `name: meaning`."""
_DROPPED_FIELD = re.compile(r":(?:rtype|type|meta)\b[^:]*:")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+_.:])\1{2,}\Z")
_PROMPT = ">>>"
_MARK = re.compile(
    r"""\{@(?:code|link|linkplain|literal|value)[ \t]+(?P<inner>[^{}\r\n]*)\}
    | :math:`(?P<math>[^`\r\n]{1,300})` | (?<![\w$])\$(?P<formula>[^\s$][^$\r\n]{0,200})\$(?!\w)
    | (?<![\w*])\*\*(?P<bold>[^\s*](?:[^*\r\n]{0,200}[^\s*])?)\*\*(?![\w*])
    | \[(?P<label>[^\[\]\r\n]{1,200})\]\((?:[a-z]{2,8}://|mailto:|[./\#])[^()\s]{0,300}\)
    | (?<![("'`])</?(?:a|b|br|c|code|dd|dl|dt|em|i|li|ol|p|para|pre|remarks|see|strong|summary|tt
        |ul)\b[^<>]{0,200}>(?![)"'`])
    | [@\\](?:p|c|a|e|em|b|ref)[ \t]+(?=\w) | :[a-z][\w:]{0,30}:(?=`)
    | \s*<[a-z]{2,8}://[^<>\s]{1,300}>`__?(?!\w) | `__?(?!\w)
    | (?<![\w`])`+(?:~\.?(?:\w{1,60}\.){0,9}|[!.])(?=\w) | `+""",
    re.VERBOSE,
)
_LINE_ENDS = (".", "!", "?", ":", ";", ",", ")")
_MAX_CODE_LINE = 300  # characters that are looked at


def comment_paragraphs(source: str, lines: Iterable[LineSpan]) -> Iterator[list[LineSpan]]:
    """
    The paragraphs of a comment, each as the spans of its lines without white space at the ends.

    `lines` are spans without the marks of the comment. List items, tags such as `@param` and the
    parameters of docstrings start a paragraph. A paragraph of less than two words is left out.
    """
    paragraph: list[LineSpan] = []
    is_example = _ExampleFilter()
    for start, end in lines:
        line = source[start:end]
        bare = line.strip()
        if bare.startswith(": "):  # `#: meaning`, as Sphinx documents attributes
            start += line.index(":") + 1
            line = source[start:end]
            bare = line.strip()
        indent = len(line) - len(line.lstrip())
        tag = _TAG.match(bare)
        if is_example(bare, indent) or not (tag or not _is_noise(bare)):
            if _UNDERLINE.match(bare) and len(paragraph) == 1:
                paragraph = []  # the name of a section of a docstring
            yield from _whole(source, paragraph)
            paragraph = []
            continue
        mark = tag or _FIELD.match(bare) or _item_mark(source, paragraph, bare)
        if paragraph and (mark or _PARAMETER.match(bare)):
            yield from _whole(source, paragraph)
            paragraph = []
        first = start + indent + (mark.end() if mark else 0)
        if first < start + indent + len(bare):
            paragraph.append((first, start + indent + len(bare)))
    yield from _whole(source, paragraph)


def _item_mark(source: str, paragraph: list[LineSpan], bare: str) -> re.Match[str] | None:
    """
    The mark of a list item at the start of a line.

    A number at the end of a sentence may start a line too: behind an open line, it is an item only
    if it is 1 or the paragraph is an item itself.
    """
    mark = _ITEM.match(bare)
    if mark and mark.end() == 0 and paragraph and not bare.startswith(("1.", "1)")):
        above = source[slice(*paragraph[-1])]
        if not above.endswith(_LINE_ENDS) and not _ITEM.match(source, paragraph[0][0]):
            return None
    return mark


def _whole(source: str, paragraph: list[LineSpan]) -> Iterator[list[LineSpan]]:
    if paragraph and any(_WORDS.search(source, *span) for span in paragraph):
        yield paragraph


def joined_pieces(source: str, spans: Iterable[LineSpan]) -> list[Piece]:
    """The lines of a paragraph as pieces, joined by single spaces, without `<b>`, `**` and such."""
    pieces: list[Piece] = []
    for start, end in spans:
        if pieces:
            pieces.append((" ", pieces[-1][2], start))
        for mark in _MARK.finditer(source, start, end):
            if mark.start() > start:
                pieces.append((source[start : mark.start()], start, mark.start()))
            for group in ("inner", "bold", "label", "math", "formula"):
                first, last = mark.span(group)
                if last > first:
                    pieces += _shown_pieces(source[first:last], first, last, group)
            start = mark.end()
        if end > start:
            pieces.append((source[start:end], start, end))
    if pieces and pieces[-1][0].endswith("::"):  # an example of code follows
        text, start, end = pieces[-1]
        pieces[-1] = text[:-1], start, end - 1
    return pieces


def _shown_pieces(text: str, start: int, end: int, group: str) -> list[Piece]:
    if group not in ("math", "formula"):
        return [(text, start, end)]
    shown = plain_formula(text)
    # The first character stands for the whole span, so that no two spans overlap.
    pieces = [(shown[:1], start, end), (shown[1:], end, end)]
    return [piece for piece in pieces if piece[0]]


class _ExampleFilter:
    """Tells which lines of a comment are examples of code, line by line."""

    def __init__(self) -> None:
        self._in_fence = False
        self._after_prompt = False
        self._outer_indent: int | None = None  # of the line above an indented example
        self._in_tag = False  # in an example that ends with the next tag

    def __call__(self, bare: str, indent: int) -> bool:
        if _FENCE.match(bare):
            self._in_fence = not self._in_fence
            return True
        if self._in_tag and _ANY_TAG.match(bare):
            self._in_tag = False
        if not bare:
            self._after_prompt = False
            return True
        if self._outer_indent is not None and indent <= self._outer_indent:
            self._outer_indent = None
        is_example = (
            self._in_fence or self._in_tag or self._after_prompt or self._outer_indent is not None
        )
        if bare.startswith(_PROMPT):
            self._after_prompt = True
        elif not is_example and (tag := _EXAMPLE_TAG.match(bare)):
            if tag["tag"]:
                self._in_tag = True
            else:
                self._outer_indent = indent
            return True
        elif not is_example and bare.endswith("::"):
            self._outer_indent = indent
            return False
        return is_example or self._after_prompt


def _is_noise(bare: str) -> bool:
    head = bare[:_MAX_CODE_LINE]
    return bool(
        not _LETTER.search(head)
        or _SECTION.fullmatch(head)
        or _BANNER.fullmatch(head)
        or _UNDERLINE.match(head)
        or _DIRECTIVE.match(head)
        or _DROPPED_TAG.match(head)
        or _DROPPED_FIELD.match(head)
        or (_CODE.search(head) and not _PROSE.search(head))
    )
