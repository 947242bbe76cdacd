"""
Read JSON with exact offsets: strings, and numbers with their keys (`keyed_values`).

The source is cut into tokens by one regular expression, so comments and trailing commas do no harm
and any size and depth takes linear time.
"""

from __future__ import annotations

import re

from ...errors import Problem
from .document import Content, UnreadableError
from .jsonl import string_pieces
from .keyed_values import KeyedWriter
from .offsets import line_starts, replace_surrogates
from .records import Piece

__all__ = [
    "read_json",
]

# A string that is not closed ends with the file: otherwise it is searched again from each of its
# escaped quotation marks, which takes quadratic time. So does a comment.
_TOKEN = re.compile(
    r"""(?P<string>"[^"\\]*(?:\\.[^"\\]*)*(?P<quote>"|\\?\Z))
    | (?P<mark>[\[\]{},:])
    | (?P<scalar>-?\d[\d.eE+-]{0,40}|true|false)(?![\w.])
    | //[^\r\n]* | /\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)""",
    re.DOTALL | re.VERBOSE,
)


def read_json(source: str) -> Content:
    """Text and blocks; a file that ends too early is read up to there and reported."""
    if not source.lstrip("\ufeff \t\r\n").startswith(("{", "[", '"', "//", "/*")):
        raise UnreadableError("It is not JSON: an object or a list was expected. Correct it.")
    writer = KeyedWriter()
    is_object: list[bool] = []
    key: Piece | None = None
    waiting: Piece | None = None  # a string that may be a key
    is_closed = True
    for token in _TOKEN.finditer(source):
        if token["string"] is not None:
            is_closed = token["quote"] == '"'
            start, end = token.span("string")
            if is_object and is_object[-1] and key is None:
                waiting = (_text(source, start + 1, end - 1), start + 1, end - 1)
            elif is_closed:
                writer.add(key, _pieces(source, start + 1, end - 1))
                key = None
        elif token["scalar"] is not None:
            writer.add(key, [(token[0], *token.span())], is_string=False)
            key = None
        elif (mark := token["mark"]) is None:
            continue
        elif mark == ":":
            key, waiting = waiting, None
        elif mark == ",":
            key = waiting = None
        elif mark in "{[":
            is_element = mark == "{" and bool(is_object) and not is_object[-1]
            writer.open(key, is_element=is_element)
            is_object.append(mark == "{")
            key = waiting = None
        elif is_object:
            is_object.pop()
            writer.close()
            key = waiting = None
    problems = []
    if is_object or not is_closed:
        problems.append(Problem("", 0, "It ends in the middle of a value. Get it again."))
    return writer.content(line_starts(source), problems)


def _pieces(source: str, start: int, end: int) -> list[Piece]:
    try:
        found = list(string_pieces(source, start, end, 0))
    except ValueError:  # an escape that JSON does not have
        return [(source[start:end], start, end)] if end > start else []
    return [(replace_surrogates(piece), first, last) for piece, first, last in found]


def _text(source: str, start: int, end: int) -> str:
    return "".join(piece for piece, _, _ in _pieces(source, start, max(start, end)))
