"""
What reading a file gives: its text, and for every character the place it came from.

`Document.text` is what sentences are found in; the original is the decoded file. For all formats
that are text themselves (plain, markdown, html, jsonl, csv), `Document.span` turns offsets in the
one into offsets that slice the other exactly:

    original = path.read_bytes().decode(document.encoding)
    start, end = document.span(sentence.start, sentence.end)
    original[start:end]

Where markup stands inside a sentence, the slice of the original holds it.

What the reader of one format hands back, before it becomes a `Document`.

The sentences of a document, block by block, so that none runs across a heading or a table.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from ...errors import Problem
from ..sentences import split_sentences
from .offsets import Segments

__all__ = [
    "CELL_SEPARATOR",
    "BlockKind",
    "Blocks",
    "Content",
    "DocumentPart",
    "FileKind",
    "ParsedDocument",
    "Place",
    "PlaceUnit",
    "SentenceSpan",
    "TextBlock",
    "UnreadableError",
    "iter_sentences",
]

FileKind = Literal["text", "markdown", "html", "pdf", "docx", "jsonl", "csv"]
PlaceUnit = Literal["line", "page", "paragraph"]
BlockKind = Literal["text", "heading", "code", "cell", "row", "table", "columns"]
"""
Of the cells of a table, the first of a row is a `row`, the first of its first row a `table`, or
`columns` where that row names the columns; all others are each a `cell`.
"""
SentenceKind = Literal["sentence", "heading", "code", "cell", "row", "columns"]

_BLOCK_KINDS: tuple[BlockKind, ...] = get_args(BlockKind)


class Place(NamedTuple):
    """Where a character stands in the original; numbers count from 1."""

    unit: PlaceUnit
    number: int

    def __str__(self) -> str:
        return f"{self.unit} {self.number}"


class TextBlock(NamedTuple):
    """A piece of the text that no sentence may leave."""

    start: int
    end: int
    kind: BlockKind


class DocumentPart(NamedTuple):
    """A document inside a file: a row of csv or jsonl. Its text is `text[start:end]`."""

    start: int
    end: int
    id: str
    """Its own, empty where it has none."""
    title: str
    row: int
    """As a spreadsheet counts, the header being the first; in jsonl, the line."""


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """A candidate: `text[start:end]`, never empty, without white space at either end."""

    start: int
    end: int
    kind: SentenceKind
    heading: str
    """
    The text of the nearest heading above, or the title of the row; empty where there is none.

    In a table, the names of its columns stand behind it.
    """


class Blocks:
    """Blocks in order, nine bytes each, for a file may have one every few characters."""

    def __init__(self) -> None:
        self._bounds = array("I")
        self._kinds = bytearray()

    def add(self, start: int, end: int, kind: BlockKind) -> None:
        """The next block; one without characters is left out."""
        if end > start:
            self._bounds.extend((start, end))
            self._kinds.append(_BLOCK_KINDS.index(kind))

    def name_columns(self, block: int) -> None:
        """The row that begins with this block, from 0, names the columns of its table."""
        self._kinds[block] = _BLOCK_KINDS.index("columns")

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[TextBlock]:
        bounds = iter(self._bounds)
        for start, end, kind in zip(bounds, bounds, self._kinds, strict=True):
            yield TextBlock(start, end, _BLOCK_KINDS[kind])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blocks) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file that was read. Nothing in it refers back to the file, which may change or go."""

    path: str
    """As it was given; `-` is standard input."""
    kind: FileKind
    title: str
    text: str
    sha256: str
    """Of the bytes of the file, in hexadecimal digits."""
    encoding: str | None
    """The codec that decodes the file into its original; None where the file is no text."""
    blocks: Blocks
    unit: PlaceUnit
    starts: array[int]
    """Where lines start in the original, or pages or paragraphs in the text."""
    segments: Segments | None = None
    """How the text lies in the original; None where they are the same, or there is none."""
    parts: tuple[DocumentPart, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Rows that were left out, where others could be read."""

    def place(self, offset: int) -> Place:
        """The line, page or paragraph of the character `text[offset]`."""
        at = self.segments.start(offset) if self.segments else offset
        return Place(self.unit, max(bisect_right(self.starts, at), 1))

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """`text[start:end]` as offsets in the original; None for pdf and docx, which have none."""
        if self.encoding is None:
            return None
        return self.segments.span(start, end) if self.segments else (start, end)

    def part(self, offset: int) -> DocumentPart | None:
        """The document inside the file that holds `text[offset]`, or None."""
        at = bisect_right(self.parts, offset, key=lambda part: part.start) - 1
        return self.parts[at] if at >= 0 and offset < self.parts[at].end else None


class UnreadableError(Exception):
    """Why a file cannot be read; `read_document` raises it as a `DataError` with the path."""

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Content:
    """The fields of a `Document` that depend on the format. The path of a problem is filled in."""

    text: str
    blocks: Blocks
    unit: PlaceUnit
    starts: array[int]
    title: str = ""
    segments: Segments | None = None
    parts: tuple[DocumentPart, ...] = ()
    problems: tuple[Problem, ...] = ()


CELL_SEPARATOR = " | "
"""Between the cells of a row where it is shown on one line; in the text they are lines."""

_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")
_PORTION = 2**16  # characters split at a time, so that memory stays small beside the text
_ROW_CHARACTERS = 500
"""A longer row is no row of facts: tables also hold the columns of a page."""
_IN_TABLES = frozenset(("cell", "row", "table", "columns"))


def iter_sentences(document: ParsedDocument) -> Iterator[SentenceSpan]:
    """
    Every sentence, in order, each with its kind and the nearest heading above it.

    Spans do not overlap. A heading is one sentence; code is cut at blank lines alone. A row of a
    table is one too, for a cell alone says nothing; where a cell has several sentences, the cells
    of its row are split as text is.
    """
    heading = ""
    columns = ""  # of the table at hand
    parts = iter(document.parts)
    part = next(parts, None)
    for blocks in _rows(document.blocks):
        start, end, kind = blocks[0]
        while part is not None and start >= part.start:
            heading, part = part.title, next(parts, None)
        if kind != "row":
            columns = ""
        under = " · ".join(filter(None, (heading, columns)))
        if kind == "heading":
            yield from _whole(document.text, start, end, "heading", heading)
            heading = " ".join(document.text[start:end].split())
        elif kind == "code":
            for first, last in _portions(document.text, start, end, 1):
                yield from _whole(document.text, first, last, "code", heading)
        elif kind in _IN_TABLES and _is_row(document.text, blocks):
            shown: SentenceKind = "columns" if kind == "columns" else "row"
            yield from _whole(document.text, start, blocks[-1].end, shown, under)
            if kind == "columns":
                columns = CELL_SEPARATOR.join(_line(document.text, block) for block in blocks)
        else:
            for block in blocks:
                yield from _split(document.text, block, under)


def _rows(blocks: Iterable[TextBlock]) -> Iterator[list[TextBlock]]:
    """Each block by itself, but the cells of a row together."""
    row: list[TextBlock] = []
    for block in blocks:
        if row and block.kind != "cell":
            yield row
            row = []
        if block.kind in _IN_TABLES:
            row.append(block)
        else:
            yield [block]
    if row:
        yield row


def _is_row(text: str, row: Sequence[TextBlock]) -> bool:
    """Whether it has several cells, each of which says one thing."""
    if len(row) < 2 or row[-1].end - row[0].start > _ROW_CHARACTERS:
        return False
    return all(len(split_sentences(text[start:end])) == 1 for start, end, _ in row)


def _line(text: str, block: TextBlock) -> str:
    return " ".join(text[block.start : block.end].split())


def _split(text: str, block: TextBlock, heading: str) -> Iterator[SentenceSpan]:
    kind: SentenceKind = "cell" if block.kind in _IN_TABLES else "sentence"
    for first, last in _portions(text, block.start, block.end, _PORTION):
        for left, right in split_sentences(text[first:last]):
            yield SentenceSpan(first + left, first + right, kind, heading)


def _whole(
    text: str, start: int, end: int, kind: SentenceKind, heading: str
) -> Iterator[SentenceSpan]:
    piece = text[start:end]
    bare = piece.strip()
    if bare:
        start += len(piece) - len(piece.lstrip())
        yield SentenceSpan(start, start + len(bare), kind, heading)


def _portions(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """The block cut at blank lines into pieces of at least `size` characters."""
    while end - start > size:
        found = _BLANK_LINE.search(text, start + size, end)
        if not found:
            break
        yield start, found.end()
        start = found.end()
    yield start, end
