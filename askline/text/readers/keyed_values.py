"""
What the readers of JSON, YAML and settings share: keys with values as text.

A key that contains others is a heading, written before the first value in it. A value is shown
with its key, `port: 8080`, unless the key says nothing about it, such as `description`. Short
values of a list are joined into one line, and so are those of an object in a list, which is like
the row of a table. Null, hashes and encoded data are left out.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...errors import Problem
from .comments import comment_paragraphs, joined_pieces
from .document import Blocks, Content
from .kinds import BlockKind
from .markup import LineSpan
from .offsets import TextBuilder
from .records import Piece

__all__ = [
    "KeyedWriter",
    "comment_pieces",
]

_PLAIN_KEYS = frozenset(
    """abstract answer body caption comment content contents desc description details doc
    documentation docs explanation help html lines markdown message note notes overview paragraph
    sentence summary text value""".split()
)
"""Keys that are not shown with values of several words."""
_SENTENCE_ENDS = (".", "!", "?", ":", ";", ",")
_TITLE_KEYS = frozenset(("title", "name", "heading", "question"))
"""Keys whose value is the heading of the object that they stand in."""
_MAX_HEADING_CHARACTERS = 200
_MAX_LIST_CHARACTERS = 400
_MAX_NUMBERS = 100  # in one object; with more, it is a table of numbers, such as a vocabulary
_MAX_WORD_CHARACTERS = 80  # of a value that is joined with others
_MAX_DEPTH = 50  # deeper objects count as part of the one above
_WORDS = re.compile(r"\S\s+\S")
_SENTENCE = re.compile(r"[.!?](?:\s|\Z)|\n")
_LETTER = re.compile(r"[^\W\d_]")
_ENCODED = re.compile(r"(?=\S*\d)(?:[0-9a-fA-F-]{16,}|[\w+/=-]{32,})")
_POINTERS = frozenset(("$ref", "$schema", "$id", "$anchor"))
"""Keys of JSON Schema whose values are places in a file and never text."""
_TOP_LEVEL = "Top level"
_LITERAL = re.compile(
    r"(?<![\w`\\])(`{1,2})([^`\n]{1,200}?)(?:\s<[a-z]{2,8}://[^<>`\s]{1,300}>)?\1(?:__?)?(?![\w`])"
    r"|(?<![\w`\\])``(?=[^\s`])|(?<=[^\s`])``(?![\w`])"
)
"""A literal, a link of reStructuredText, or one end of a literal of several lines."""


@dataclass(slots=True, eq=False)
class _Container:
    """An open object or list."""

    key: Piece | None
    is_element: bool = False
    """Whether it is an object in a list."""
    title: str = ""
    """Of an object with a title; the text of the key otherwise."""
    is_shown: bool = False
    """Whether its heading has been written."""
    words: list[tuple[Piece | None, Sequence[Piece]]] = field(default_factory=list)
    """Short values, in an object with their keys, that wait to be joined."""
    characters: int = 0
    numbers: int = 0
    """Values that are no strings."""


def comment_pieces(source: str, start: int, end: int) -> list[Piece]:
    """The comment behind a value, without its mark; empty if it is not text."""
    paragraph = next(comment_paragraphs(source, [(start, end)]), None)
    return joined_pieces(source, paragraph) if paragraph else []


class KeyedWriter:
    """Collects the values of a file in order."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self._builder = TextBuilder()
        self._open = [_Container(None)]
        self._too_deep = 0
        self._current = self._open[0]  # the container whose heading was written last

    def open(self, key: Piece | None, *, is_element: bool = False) -> None:
        """Start an object or a list; an element of a list has no key."""
        self._flush()
        if len(self._open) < _MAX_DEPTH:
            title = " ".join(key[0].split()) if key else ""
            self._open.append(_Container(key, is_element, title))
        else:
            self._too_deep += 1

    def close(self) -> None:
        """End the object or list that was started last."""
        self._flush()
        if self._too_deep:
            self._too_deep -= 1
        elif len(self._open) > 1:
            self._open.pop()

    def add(
        self,
        key: Piece | None,
        value: Sequence[Piece],
        *,
        is_string: bool = True,
        comment: Sequence[Piece] = (),
    ) -> None:
        """Add a value, in an object with its key, and the comment behind it."""
        if comment and not self._is_title(key) and value:
            mark = " " if value[-1][0].endswith(_SENTENCE_ENDS) else ", "
            value = [*value, (mark, value[-1][2], comment[0][1]), *comment]
            comment = ()
        self._add_value(key, value, is_string=is_string)
        if comment:
            self._flush()
            self._write_under(self._open, "text", [(None, comment)])

    @staticmethod
    def _is_title(key: Piece | None) -> bool:
        return key is not None and key[0].strip().lower() in _TITLE_KEYS

    def _add_value(self, key: Piece | None, value: Sequence[Piece], *, is_string: bool) -> None:
        text = "".join(piece for piece, _, _ in value).strip()
        if not text or _ENCODED.fullmatch(text):
            return
        has_words = _WORDS.search(text) is not None
        if key is None:
            if has_words:
                self._flush()
                self._write_under(self._open, "text", [(None, value)])
            elif is_string:
                self._add_word(None, value, len(text))
            return
        name = key[0].strip().lower()
        if name in _POINTERS:
            return
        container = self._open[-1]
        container.numbers += not is_string
        if not is_string and container.numbers > _MAX_NUMBERS:
            return
        is_short = len(text) <= _MAX_WORD_CHARACTERS and not _SENTENCE.search(text)
        is_first_title = name in _TITLE_KEYS and not container.words
        if container.is_element and is_short and not is_first_title:
            self._add_word(key, value, len(key[0]) + len(text))
            return
        self._flush()
        if self._is_title(key) and is_string and self._can_be_title(container, text):
            self._write_under(self._open[:-1], "heading", [(None, value)])
            container.title, container.is_shown = text, True
            self._current = container
        elif name in _PLAIN_KEYS and has_words:
            self._write_under(self._open, "text", [(None, value)])
        else:
            self._write_under(self._open, "text", [(key, value)])

    def add_comments(self, source: str, lines: Sequence[LineSpan]) -> None:
        """Add the lines of a comment, without their marks, as text."""
        for paragraph in comment_paragraphs(source, lines):
            self._flush()
            self._write_under(self._open, "text", [(None, joined_pieces(source, paragraph))])

    def content(self, starts: array[int], problems: Iterable[Problem] = ()) -> Content:
        """The whole file; places are lines."""
        self._flush()
        return Content(
            self._builder.text(),
            self.blocks,
            "line",
            starts,
            segments=self._builder.segments,
            problems=tuple(problems),
        )

    @staticmethod
    def _can_be_title(container: _Container, text: str) -> bool:
        """Only before other values: a heading is above what it names."""
        is_short = len(text) <= _MAX_HEADING_CHARACTERS and "\n" not in text
        return is_short and not container.is_shown and _LETTER.search(text) is not None

    def _add_word(self, key: Piece | None, value: Sequence[Piece], length: int) -> None:
        container = self._open[-1]
        container.words.append((key, value))
        container.characters += length + 2
        if container.characters > _MAX_LIST_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        """Write the short values that wait, with the key of their list if it is no heading."""
        container = self._open[-1]
        words, container.words, container.characters = container.words, [], 0
        if not words:
            return
        if container.is_shown or container.key is None:
            self._write_under(self._open, "text", words)
        else:
            self._write_under(self._open[:-1], "text", [(container.key, words[0][1]), *words[1:]])
            at = self._builder.segments.end(self._builder.length)
            container.key = container.key[0], at, at  # its own place has been used

    def _write_under(
        self,
        containers: Sequence[_Container],
        kind: BlockKind,
        values: Sequence[tuple[Piece | None, Sequence[Piece]]],
    ) -> None:
        """Write a block below the headings of the open containers."""
        key, pieces = values[0]
        at = key[1] if key else pieces[0][1]
        keyed = [each for each in containers if each.title]
        for level, each in enumerate(keyed, 1):
            if not each.is_shown and each.key is not None:
                self._write("heading", [(None, [each.key])], level=level)
                each.is_shown = True
                self._current = each
        owner = keyed[-1] if keyed else self._open[0]
        if owner is not self._current and kind != "heading":  # values after an inner object
            title = owner.title or _TOP_LEVEL
            piece = (title[:_MAX_HEADING_CHARACTERS], at, at)
            self._write("heading", [(None, [piece])], level=max(len(keyed), 1))
            self._current = owner
        self._write(kind, values, level=len(keyed) + 1 if kind == "heading" else 0)

    def _write(
        self,
        kind: BlockKind,
        values: Iterable[tuple[Piece | None, Sequence[Piece]]],
        *,
        level: int = 0,
    ) -> None:
        start = self._builder.length
        for number, (key, value) in enumerate(values):
            if number:
                self._insert(", ")
            if key is not None:
                self._builder.add_whole(key[0][:_MAX_HEADING_CHARACTERS], key[1], key[2])
                self._insert(": ")
            for piece in _without_backticks(value):
                self._builder.add_whole(*piece)
        self.blocks.add(start, self._builder.length, kind, level)
        self._insert("\n")

    def _insert(self, text: str) -> None:
        self._builder.insert(text, self._builder.segments.end(self._builder.length))


def _without_backticks(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """
    The pieces of a value without the backticks around names in prose.

    Documentation in a value is often Markdown or reStructuredText. A piece with escapes, whose
    characters are not those of the source, is left as it is, and so is a value that is one literal.
    """
    for text, start, end in pieces:
        position = 0
        if end - start == len(text) and _WORDS.search(text):
            for found in _LITERAL.finditer(text):
                if position < found.start():
                    yield text[position : found.start()], start + position, start + found.start()
                if found[2]:
                    yield found[2], start + found.start(2), start + found.end(2)
                position = found.end()
        if position < len(text):
            yield text[position:], start + position, end
