"""
Read source code by its comments and docstrings, with exact offsets. Code is left out.

One regular expression per family of languages cuts the source into comments, strings and names, so
that a comment mark inside a string is no comment. Consecutive line comments are one comment. The
heading of a comment is the function or class that it stands in or, before a definition, the one
that follows it. Python is read in the same way and not by `tokenize`, which stops at the first
error and depends on the version of Python that runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .comments import comment_paragraphs, joined_pieces
from .document import Blocks, Content, UnreadableError
from .file_kinds import LANGUAGES
from .kinds import BlockKind
from .markup import LineSpan
from .offsets import TextBuilder, line_starts
from .records import Piece

__all__ = [
    "read_source_code",
]

_BLOCK = r"(?P<block>/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z))"
_SLASH_COMMENTS = rf"(?P<line>(?<!:)//[^\r\n]*)|{_BLOCK}"
_HASH_COMMENTS = r"(?P<line>\#[^\r\n]*)"
_WORD_HASH_COMMENTS = rf"(?<![^\s;(]){_HASH_COMMENTS}"
_DASH_COMMENTS = r"(?P<line>--(?!\[)[^\r\n]*)"
# A string that is not closed ends with its line, or with the file if it may have several lines. In
# languages with text between the code, an apostrophe must not hide the comments after its line.
_DOUBLE = r'"[^"\\\r\n]*(?:\\(?:.|\Z)[^"\\\r\n]*)*"?'
_SINGLE = r"'[^'\\\r\n]*(?:\\(?:.|\Z)[^'\\\r\n]*)*'?"
_STRINGS = rf"{_DOUBLE}|{_SINGLE}"
_BACKTICK = r"`[^`\\]*(?:\\(?:.|\Z)[^`\\]*)*(?:`|\Z)"
_CHARACTER = r"'(?:[^'\\\r\n]|\\.[^'\r\n]{0,8})'"  # one character: elsewhere ' is a mark
_LONG_DOUBLE = r'"[^"\\]*(?:\\(?:.|\Z)[^"\\]*)*(?:"|\Z)'
_RAW_RUST = r'\br(?P<hashes>\#+)"[^"]*(?:"(?!(?P=hashes))[^"]*)*(?:"(?P=hashes)|\Z)'
_TRIPLE = r'"""[^"\\]*(?:(?:\\(?:.|\Z)|"(?!""))[^"\\]*)*(?:"""|\Z)'
_TRIPLE_SINGLE = r"'''[^'\\]*(?:(?:\\(?:.|\Z)|'(?!''))[^'\\]*)*(?:'''|\Z)"

_TYPE_WORDS = (
    "class|interface|struct|enum|trait|record|namespace|module|object|protocol|extension|union|type"
)
_FUNCTION_WORDS = "function|func|fun|fn|def|sub|proc|procedure|macro_rules!|impl|package"
_NAME = r"[^\W\d][\w$]*[!?]?"


_KEYWORD_DEFINITION = (
    rf"\b(?:{_TYPE_WORDS}|{_FUNCTION_WORDS})[ \t]+(?:\([^()\r\n]*\)[ \t]*)?"
    rf"(?:[A-Z][A-Z0-9_]+[ \t]+(?=[^\W\d]))?({_NAME})"
)
_ANY_DEFINITION = re.compile(rf"({_NAME})[ \t]*(?:\?|\[[^\]]*\])?[ \t]*(?:[:=;,({{]|\Z)")
"""The first name before a bracket or a mark; used after comments for documentation only."""


@dataclass(frozen=True, slots=True)
class _Language:
    """How comments, strings and definitions are written."""

    tokens: str
    definition: str = _KEYWORD_DEFINITION
    doc_marks: tuple[str, ...] = ()
    """What comments for documentation begin with."""


_C_DOC = ("/**", "///", "/*!", "//!")
_C_DEFINITION = rf"{_KEYWORD_DEFINITION}|\#[ \t]*define[ \t]+({_NAME})"
_LANGUAGES: dict[str, _Language] = {
    "python": _Language(
        rf"(?P<doc>(?:\b[rRuUbBfF]{{1,2}})?(?:{_TRIPLE}|{_TRIPLE_SINGLE}|{_STRINGS}))"
        rf"|{_HASH_COMMENTS}|(?P<mark>[()\[\]{{}}])"
        rf"|^(?P<indent>[ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(?P<name>{_NAME})"
    ),
    "c": _Language(rf"{_SLASH_COMMENTS}|{_TRIPLE}|{_STRINGS}|{_BACKTICK}", _C_DEFINITION, _C_DOC),
    "rust": _Language(
        rf"{_SLASH_COMMENTS}|{_RAW_RUST}|{_LONG_DOUBLE}|{_CHARACTER}", _C_DEFINITION, _C_DOC
    ),
    "php": _Language(
        rf"{_BLOCK}|(?P<line>(?<!:)//[^\r\n]*|\#(?!\[)[^\r\n]*)|{_STRINGS}", _C_DEFINITION, _C_DOC
    ),
    "shell": _Language(
        rf"{_WORD_HASH_COMMENTS}|{_STRINGS}",
        rf"^[ \t]*({_NAME})[ \t]*\(\)|\b(?:function|def|proc|macro|module)[ \t]+({_NAME})",
    ),
    "ruby": _Language(
        rf"^(?P<block>=begin\b(?:(?!^=end\b)[^\r\n]*(?:\r?\n|\r|\Z))*)|{_WORD_HASH_COMMENTS}"
        rf"|{_STRINGS}"
    ),
    "perl": _Language(
        rf"^(?P<block>=(?!cut\b)[a-z]\w*(?:(?!^=cut\b)[^\r\n]*(?:\r?\n|\r|\Z))*)"
        rf"|{_WORD_HASH_COMMENTS}|{_STRINGS}"
    ),
    "r": _Language(
        rf"{_HASH_COMMENTS}|{_STRINGS}",
        rf"({_NAME}(?:\.{_NAME})*)[ \t]*(?:<-|=)[ \t]*function\b",
    ),
    "sql": _Language(
        rf"{_DASH_COMMENTS}|{_BLOCK}|{_STRINGS}",
        r"(?i:\b(?:create|alter)\b(?:[ \t]+\w+){0,4}?[ \t]+"
        r"(?:table|view|function|procedure|index|trigger|type|schema)[ \t]+"
        rf"(?:if[ \t]+not[ \t]+exists[ \t]+)?[\"`\[]?({_NAME}(?:\.{_NAME})*))",
    ),
    "lua": _Language(
        r"(?P<block>--\[(?P<level>=*)\[[^\]]*(?:\](?!(?P=level)\])[^\]]*)*(?:\](?P=level)\]|\Z))"
        rf"|{_DASH_COMMENTS}|{_STRINGS}",
        rf"\bfunction[ \t]+({_NAME}(?:[.:]{_NAME})*)",
    ),
    "haskell": _Language(
        r"(?P<block>\{-[^-]*(?:-(?!\})[^-]*)*(?:-\}|\Z))"
        r"|(?P<line>--+(?![!\#$%&*+./<=>?@\\^|~:])[^\r\n]*|--[ \t]*[|^][^\r\n]*)"
        rf"|{_DOUBLE}|{_CHARACTER}",
        rf"^(?:data|type|newtype|class|module)[ \t]+({_NAME})|^({_NAME}'?)[ \t]*::?(?:[ \t]|\Z)",
    ),
    "powershell": _Language(
        rf"(?P<block><\#[^\#]*(?:\#(?!>)[^\#]*)*(?:\#>|\Z))|{_HASH_COMMENTS}|{_STRINGS}",
        r"(?i:\b(?:function|filter|class)[ \t]+([\w-]+))",
    ),
    "lisp": _Language(rf"(?P<line>;[^\r\n]*)|{_LONG_DOUBLE}", r"\(def\w*[ \t]+([^\s()]+)"),
    "erlang": _Language(rf"(?P<line>%[^\r\n]*)|{_STRINGS}", rf"^({_NAME})\("),
    "ocaml": _Language(
        rf"(?P<block>\(\*[^*]*(?:\*(?!\))[^*]*)*(?:\*\)|\Z))|{_DOUBLE}|{_CHARACTER}",
        rf"\b(?:let|val|type|module|external|class)[ \t]+(?:rec[ \t]+)?({_NAME})",
        ("(**",),
    ),
    "fortran": _Language(
        rf"(?P<line>![^\r\n]*)|{_STRINGS}",
        rf"(?i:\b(?:subroutine|function|module|program|type)[ \t]+({_NAME}))",
    ),
}
_LINE = re.compile(r"[^\r\n]+")
_LINE_MARKS = re.compile(r"///?!?|--+[ \t]?[|^]?|\#+'?|;+|%+|!+<?>?")
_BLOCK_MARKS = re.compile(
    r"[ \t]*(?:/\*+!?<?|\*+(?![/)])|\{-[ \t]?\|?|\(\*+|<\#|--\[=*\[|=[a-z]\w*)"
)
_BLOCK_END = re.compile(r"[ \t]*(?:\*+/|-\}|\*+\)|\#>|\]=*\]|=end|=cut)\Z")
_LICENSE = re.compile(
    r"copyright|licen[sc]e|all rights reserved|©|spdx|permission is hereby granted", re.IGNORECASE
)
_HEAD_CHARACTERS = 3_000  # in which a license is left out
_DEFINITION_LINES = 4  # after a comment, in which the name is looked for
_MODULE_HEADING = "Module"  # of Python comments that stand in no function or class
_MAX_LINE = 300  # characters of such a line
_ATTRIBUTE = re.compile(r"[ \t]*(?:@|\#\[|\[|template\b|\))")
_ARGUMENTS = re.compile(r"<[^<>]*>")
_NOT_NAMES = frozenset(
    """if for while switch return catch else do sizeof new throw typeof await assert with case
    default export import public private protected static const let var final""".split()
)


@dataclass(frozen=True, slots=True)
class _Comment:
    """A comment: its span, the spans of its lines without marks, and the name of its heading."""

    start: int
    end: int
    lines: list[LineSpan]
    name: str = ""
    """Of the function or class; empty if the heading above goes on."""
    name_at: int | None = None
    """The place of the name, if it is before the comment."""


def read_source_code(source: str, *, suffix: str) -> Content:
    """Text and blocks: one block per paragraph of a comment. `suffix` chooses the language."""
    family = LANGUAGES[suffix]
    language = _LANGUAGES[family]
    find = _python_comments if family == "python" else _comments
    builder = TextBuilder()
    blocks = Blocks()
    heading = ""

    def add(pieces: Sequence[Piece], kind: BlockKind) -> None:
        start = builder.length
        for piece in pieces:
            builder.add(*piece)
        blocks.add(start, builder.length, kind, 1 if kind == "heading" else 0)
        builder.insert("\n", builder.segments.end(builder.length))

    for comment in find(source, language):
        for paragraph in comment_paragraphs(source, comment.lines):
            pieces = joined_pieces(source, paragraph)
            text = "".join(piece for piece, _, _ in pieces)
            if comment.start < _HEAD_CHARACTERS and _LICENSE.search(text):
                break
            if comment.name != heading and (comment.name or family == "python"):
                heading = comment.name
                add(_heading_pieces(comment, builder), "heading")
            add(pieces, "text")
    if not blocks:
        raise UnreadableError("It has no comments with text. Leave it out.", reason="empty")
    return Content(builder.text(), blocks, "line", line_starts(source), segments=builder.segments)


def _heading_pieces(comment: _Comment, builder: TextBuilder) -> list[Piece]:
    """The name, with its place unless it comes later or before what has been written."""
    at = comment.name_at
    if not comment.name:
        return [(_MODULE_HEADING, comment.start, comment.start)]
    if at is None or at < builder.segments.end(builder.length):
        return [(comment.name, comment.start, comment.start)]
    outer, dot, own = comment.name.rpartition(".")
    pieces = [(outer + dot, at, at)] if outer else []
    return [*pieces, (own, at, at + len(own))]


def _comments(source: str, language: _Language) -> Iterator[_Comment]:
    """The comments in order; line comments on consecutive lines are one."""
    waiting: list[LineSpan] = []  # line comments
    definition = re.compile(language.definition, re.MULTILINE)

    def merged() -> _Comment:
        start, end = waiting[0][0], waiting[-1][1]
        lines = [_line_content(source, span) for span in waiting]
        if _own_line_column(source, start) is None:  # after code
            return _Comment(start, end, lines)
        name = _following_name(source, start, end, language, definition)
        return _Comment(start, end, lines, name)

    tokens = re.compile(language.tokens, re.MULTILINE | re.DOTALL)
    has_lines, has_blocks = "line" in tokens.groupindex, "block" in tokens.groupindex
    for token in tokens.finditer(source):
        if has_lines and token["line"] is not None:
            span = token.span("line")
            if waiting and not _continues(source, waiting[-1], span[0]):
                yield merged()
                waiting = []
            waiting.append(span)
        elif has_blocks and token["block"] is not None:
            if waiting:
                yield merged()
                waiting = []
            start, end = token.span("block")
            name = _following_name(source, start, end, language, definition)
            yield _Comment(start, end, _block_lines(source, start, end), name)
    if waiting:
        yield merged()


def _continues(source: str, comment: LineSpan, start: int) -> bool:
    """Whether a line comment goes on with the one at `start`: on the next line, below it."""
    if not _is_next_line(source, comment[1], start):
        return False
    column = _own_line_column(source, start)
    above = comment[0] - (
        max(source.rfind("\n", 0, comment[0]), source.rfind("\r", 0, comment[0])) + 1
    )
    return column is not None and (
        column == above or _own_line_column(source, comment[0]) is not None
    )


def _is_next_line(source: str, end: int, start: int) -> bool:
    """Whether only one line break and white space lie between two comments."""
    between = source[end : min(start, end + _MAX_LINE)]
    return len(between) == start - end and not between.strip() and between.count("\n") == 1


def _line_content(source: str, span: LineSpan) -> LineSpan:
    marks = _LINE_MARKS.match(source, *span)
    return (marks.end() if marks else span[0]), span[1]


def _block_lines(source: str, start: int, end: int) -> list[LineSpan]:
    """The lines of a block comment without its marks and the stars at the start of lines."""
    spans: list[LineSpan] = []
    for line in _LINE.finditer(source, start, end):
        first, last = line.span()
        marks = _BLOCK_MARKS.match(source, first, last)
        if marks:
            first = marks.end()
        closing = _BLOCK_END.search(source[max(first, last - _MAX_LINE) : last])
        if closing:
            last -= len(closing[0])
        if last < first:
            last = first
        # A blank line inside the comment separates paragraphs.
        if spans and "\n" in source[spans[-1][1] : first].replace("\n", "", 1):
            spans.append((first, first))
        spans.append((first, last))
    return _dedented(source, spans)


def _dedented(source: str, spans: list[LineSpan]) -> list[LineSpan]:
    """The lines without the indentation that all but the first have in common."""
    indents = []
    for start, end in spans[1:]:
        line = source[start:end]
        if line.strip():
            indents.append(len(line) - len(line.lstrip()))
    common = min(indents, default=0)
    return spans[:1] + [(min(start + common, end), end) for start, end in spans[1:]]


def _following_name(
    source: str, start: int, end: int, language: _Language, definition: re.Pattern[str]
) -> str:
    """The name that is defined on the lines after a comment, or nothing."""
    is_doc = source.startswith(language.doc_marks, start) if language.doc_marks else False
    at = end
    for number in range(_DEFINITION_LINES):
        line_end = source.find("\n", at, at + 4 * _MAX_LINE)
        if line_end < 0:
            line_end = min(len(source), at + _MAX_LINE)
        line = source[at : min(line_end, at + _MAX_LINE)]
        at = line_end + 1
        if not line.strip():
            if number > 0:  # a blank line: the comment does not belong to what follows
                return ""
            continue
        found = definition.search(line)
        if found:
            return next(filter(None, found.groups()), "")
        if _ATTRIBUTE.match(line):
            continue
        if is_doc:
            for name in _ANY_DEFINITION.finditer(_ARGUMENTS.sub("", line)):
                is_macro = name[1].isupper() and name[0].endswith("(")
                if name[1] not in _NOT_NAMES and not is_macro:
                    return name[1]
        return ""
    return ""


def _python_comments(source: str, language: _Language) -> Iterator[_Comment]:
    """Comments and docstrings, each under the function or class that it stands in."""
    scopes: list[tuple[int, str, int]] = []  # indentation, name and its place
    waiting: list[LineSpan] = []
    depth = 0  # of brackets

    def comment(start: int, end: int, lines: list[LineSpan]) -> _Comment:
        if not scopes:
            return _Comment(start, end, lines, "")
        name = ".".join(scope[1] for scope in scopes[-_MAX_SCOPES:])
        return _Comment(start, end, lines, name, scopes[-1][2])

    def flush() -> Iterator[_Comment]:
        nonlocal waiting
        if waiting:
            lines = [_line_content(source, span) for span in waiting]
            yield comment(waiting[0][0], waiting[-1][1], lines)
            waiting = []

    for token in re.compile(language.tokens, re.MULTILINE | re.DOTALL).finditer(source):
        start, end = token.span()
        if token["line"] is not None:
            if waiting and not _continues(source, waiting[-1], start):
                yield from flush()
            column = _own_line_column(source, start)
            if column is not None and not waiting and not depth:
                _leave_scopes(scopes, column)
            waiting.append((start, end))
            continue
        if token["name"] is not None:
            indent = len(token["indent"])
            yield from _comment_before(source, waiting, token, scopes)
            waiting = []
            _leave_scopes(scopes, indent)
            scopes.append((indent, token["name"], token.start("name")))
            depth = 0
            continue
        yield from flush()
        if token["mark"] is not None:
            depth = max(depth + (1 if token[0] in "([{" else -1), 0)
        elif not depth and _is_docstring(source, start, end):
            column = _own_line_column(source, start) or 0
            _leave_scopes(scopes, column)
            first, last = _inside_quotes(source, start, end)
            yield comment(start, end, _docstring_lines(source, first, last))
    yield from flush()


_MAX_SCOPES = 5


def _leave_scopes(scopes: list[tuple[int, str, int]], column: int) -> None:
    while scopes and scopes[-1][0] >= column:
        scopes.pop()


def _comment_before(
    source: str,
    waiting: list[LineSpan],
    token: re.Match[str],
    scopes: list[tuple[int, str, int]],
) -> Iterator[_Comment]:
    """The comment directly before a definition, under the name of that definition."""
    if not waiting:
        return
    start, end = waiting[0][0], waiting[-1][1]
    lines = [_line_content(source, span) for span in waiting]
    outer = [scope[1] for scope in scopes if scope[0] < len(token["indent"])]
    if _is_next_line(source, end, token.start() + len(token["indent"])):
        yield _Comment(start, end, lines, ".".join([*outer[-_MAX_SCOPES:], token["name"]]))
    else:
        yield _Comment(start, end, lines, ".".join(scope[1] for scope in scopes))


def _own_line_column(source: str, start: int) -> int | None:
    """The column of a token that is the first on its line; None for others."""
    line = max(source.rfind("\n", 0, start), source.rfind("\r", 0, start)) + 1
    return start - line if not source[line:start].strip() else None


def _is_docstring(source: str, start: int, end: int) -> bool:
    """Whether a string stands alone on its lines."""
    prefix = source[start : start + 2].lower()
    if prefix[0] in "bf" or prefix in ("rb", "rf"):
        return False
    after = source[end : end + _MAX_LINE].lstrip(" \t")
    return _own_line_column(source, start) is not None and after[:1] in ("", "\n", "\r", "#")


def _inside_quotes(source: str, start: int, end: int) -> LineSpan:
    while source[start] not in "\"'":
        start += 1
    size = 3 if source.startswith(('"""', "'''"), start) else 1
    quote = source[start : start + size]
    has_end = end - start >= 2 * size and source.endswith(quote, start, end)
    return start + size, end - size if has_end else end


def _docstring_lines(source: str, start: int, end: int) -> list[LineSpan]:
    spans: list[LineSpan] = []
    position = start
    while position <= end:
        stop = source.find("\n", position, end)
        stop = end if stop < 0 else stop
        last = stop - (stop > position and source[stop - 1] == "\r")
        spans.append((position, last))
        position = stop + 1
    return _dedented(source, spans)
