"""
The result of reading a file: its text, its blocks, and the way back to the original.

Sentences are found in `ParsedDocument.text`; the original is the decoded file. For all formats that
are text themselves (plain, Markdown, HTML, JSONL, CSV), `ParsedDocument.span` converts offsets in
the text into offsets that slice the original exactly:

    original = path.read_bytes().decode(document.encoding)
    start, end = document.span(sentence.start, sentence.end)
    original[start:end]

If a sentence contains markup, the slice of the original contains it too. `iter_sentences` splits a
document block by block, so that no sentence crosses a heading or a table.
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
    "Sentences",
    "TextBlock",
    "UnreadableError",
    "iter_sentences",
]

FileKind = Literal[
    "text",
    "markdown",
    "rst",
    "asciidoc",
    "org",
    "latex",
    "notebook",
    "subtitles",
    "manpage",
    "mail",
    "html",
    "pdf",
    "docx",
    "jsonl",
    "csv",
]
PlaceUnit = Literal["line", "page", "paragraph", "cell", "message"]
BlockKind = Literal["text", "heading", "code", "cell", "row", "table", "columns"]
"""
In a table, the first cell of each row has the kind `row`, except in the first row: there it is
`columns` if the row is a header with the names of the columns, else `table`. All other cells have
the kind `cell`.
"""
SentenceKind = Literal["sentence", "heading", "code", "cell", "row", "columns"]

CELL_SEPARATOR = " | "
"""Put between the cells of a row that is shown on one line. In the text, each cell is a line."""

_BLOCK_KINDS: tuple[BlockKind, ...] = get_args(BlockKind)
_SENTENCE_KINDS: tuple[SentenceKind, ...] = get_args(SentenceKind)
_TABLE_KINDS = frozenset(("cell", "row", "table", "columns"))
_MAX_ROW_CHARACTERS = 500
"""The cells of a longer row are split as text: tables are also used for page layout."""
_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")
_CHUNK_CHARACTERS = 2**16  # split at a time, so that memory stays small compared with the text


class Place(NamedTuple):
    """A line, page, paragraph, notebook cell or message of the original, counted from 1."""

    unit: PlaceUnit
    number: int

    def __str__(self) -> str:
        return f"{self.unit} {self.number}"


class TextBlock(NamedTuple):
    """A piece of the text that no sentence crosses."""

    start: int
    end: int
    kind: BlockKind


class DocumentPart(NamedTuple):
    """A row of CSV or JSONL or a message of a mailbox. Its text is `text[start:end]`."""

    start: int
    end: int
    id: str
    """The row's own id, or empty."""
    title: str
    row: int
    """
    In CSV counted as in a spreadsheet, where the header is row 1; in JSONL, the line; in a mailbox,
    the message.
    """


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """A candidate: `text[start:end]` is never empty and has no white space at either end."""

    start: int
    end: int
    kind: SentenceKind
    heading: str
    """
    The text of the nearest heading above, or the title of the row; empty if there is none.

    In a table with a header, the column names follow after ` · `.
    """


class Blocks:
    """Text blocks in order, nine bytes each, because a file may have one every few characters."""

    def __init__(self) -> None:
        self._bounds = array("I")
        self._kinds = bytearray()

    def add(self, start: int, end: int, kind: BlockKind) -> None:
        """Append a block; an empty one is ignored."""
        if end > start:
            self._bounds.extend((start, end))
            self._kinds.append(_BLOCK_KINDS.index(kind))

    def mark_header(self, block: int) -> None:
        """Mark the row that starts with this block (counted from 0) as its table's header."""
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


class Sentences:
    """Sentences in order, in 13 bytes each and one string per heading."""

    def __init__(self, spans: Iterable[SentenceSpan] = ()) -> None:
        self._bounds = array("I")
        self._kinds = bytearray()
        self._headings = [""]
        self._heading_of = array("I")
        for span in spans:
            self._bounds.extend((span.start, span.end))
            self._kinds.append(_SENTENCE_KINDS.index(span.kind))
            if span.heading is not self._headings[-1]:
                self._headings.append(span.heading)
            self._heading_of.append(len(self._headings) - 1)

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[SentenceSpan]:
        bounds = iter(self._bounds)
        for start, end, kind, heading in zip(
            bounds, bounds, self._kinds, self._heading_of, strict=True
        ):
            yield SentenceSpan(start, end, _SENTENCE_KINDS[kind], self._headings[heading])


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The content of a file. It does not refer to the file, which may change or be removed."""

    path: str
    """As given by the caller; `-` is standard input."""
    kind: FileKind
    title: str
    text: str
    sha256: str
    """Of the bytes of the file, in hexadecimal."""
    encoding: str | None
    """The codec that decodes the file into the original; None for PDF, DOCX and e-mail."""
    blocks: Blocks
    unit: PlaceUnit
    starts: array[int]
    """Offsets at which lines start in the original, or pages or paragraphs in the text."""
    segments: Segments | None = None
    """Maps the text to the original; None if they are equal, and for PDF, DOCX and e-mail."""
    parts: tuple[DocumentPart, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Rows that could not be read, if others could."""

    def place(self, offset: int) -> Place:
        """The line, page or paragraph that contains the character `text[offset]`."""
        at = self.segments.start(offset) if self.segments else offset
        return Place(self.unit, max(bisect_right(self.starts, at), 1))

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The offsets of `text[start:end]` in the original; None for PDF, DOCX and e-mail."""
        if self.encoding is None:
            return None
        return self.segments.span(start, end) if self.segments else (start, end)

    def part(self, offset: int) -> DocumentPart | None:
        """The row that contains `text[offset]`, or None."""
        at = bisect_right(self.parts, offset, key=lambda part: part.start) - 1
        return self.parts[at] if at >= 0 and offset < self.parts[at].end else None


class UnreadableError(Exception):
    """Why a file cannot be read. `read_document` turns it into a `DataError` with the path."""

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Content:
    """What the reader of one format returns. `read_document` fills in the path of the problems."""

    text: str
    blocks: Blocks
    unit: PlaceUnit
    starts: array[int]
    title: str = ""
    segments: Segments | None = None
    parts: tuple[DocumentPart, ...] = ()
    problems: tuple[Problem, ...] = ()


def iter_sentences(document: ParsedDocument) -> Iterator[SentenceSpan]:
    """
    Every sentence in order, with its kind and the nearest heading above it.

    Spans do not overlap. A heading is one sentence; code is split at blank lines only. A row of a
    table is one sentence, because a single cell has too little context; if a cell has several
    sentences, all cells of its row are split like text.
    """
    heading = ""
    columns = ""  # names of the columns of the current table
    under = ""  # both; joined once and not per sentence, because a heading can be very long
    joined = heading, columns
    parts = iter(document.parts)
    part = next(parts, None)
    for blocks in _group_rows(document.blocks):
        start, end, kind = blocks[0]
        while part is not None and start >= part.start:
            heading, part = part.title, next(parts, None)
        if kind != "row":
            columns = ""
        if joined != (heading, columns):
            joined = heading, columns
            under = " · ".join(filter(None, joined))
        if kind == "heading":
            yield from _whole(document.text, start, end, "heading", heading)
            heading = " ".join(document.text[start:end].split())
        elif kind == "code":
            for first, last in _chunks(document.text, start, end, 1):
                yield from _whole(document.text, first, last, "code", heading)
        elif kind in _TABLE_KINDS and _is_one_sentence(document.text, blocks):
            row_kind: SentenceKind = "columns" if kind == "columns" else "row"
            yield from _whole(document.text, start, blocks[-1].end, row_kind, under)
            if kind == "columns":
                columns = CELL_SEPARATOR.join(
                    " ".join(document.text[block.start : block.end].split()) for block in blocks
                )
        else:
            for block in blocks:
                yield from _split(document.text, block, under)


def _group_rows(blocks: Iterable[TextBlock]) -> Iterator[list[TextBlock]]:
    """The cells of each table row as one list; every other block alone."""
    row: list[TextBlock] = []
    for block in blocks:
        if row and block.kind != "cell":
            yield row
            row = []
        if block.kind in _TABLE_KINDS:
            row.append(block)
        else:
            yield [block]
    if row:
        yield row


def _is_one_sentence(text: str, row: Sequence[TextBlock]) -> bool:
    """Whether a row is short and has several cells of one sentence each."""
    if len(row) < 2 or row[-1].end - row[0].start > _MAX_ROW_CHARACTERS:
        return False
    return all(len(split_sentences(text[start:end])) == 1 for start, end, _ in row)


def _split(text: str, block: TextBlock, heading: str) -> Iterator[SentenceSpan]:
    kind: SentenceKind = "cell" if block.kind in _TABLE_KINDS else "sentence"
    for first, last in _chunks(text, block.start, block.end, _CHUNK_CHARACTERS):
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


def _chunks(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """The spans of `text[start:end]` cut at blank lines, each of at least `size` characters."""
    while end - start > size:
        found = _BLANK_LINE.search(text, start + size, end)
        if not found:
            break
        yield start, found.end()
        start = found.end()
    yield start, end
