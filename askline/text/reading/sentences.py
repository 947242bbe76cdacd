"""The sentences of a document, block by block, so that none runs across a heading or a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..sentences import split_sentences
from .document import Block, Document, Sentence, SentenceKind

__all__ = ["CELLS_APART", "sentences"]

CELLS_APART = " | "
"""Between the cells of a row where it is shown on one line; in the text they are lines."""

_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")
_PORTION = 2**16  # characters split at a time, so that memory stays small beside the text
_ROW_CHARACTERS = 500
"""A longer row is no row of facts: tables also hold the columns of a page."""
_IN_TABLES = frozenset(("cell", "row", "table", "columns"))


def sentences(document: Document) -> Iterator[Sentence]:
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
                columns = CELLS_APART.join(_line(document.text, block) for block in blocks)
        else:
            for block in blocks:
                yield from _split(document.text, block, under)


def _rows(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Each block by itself, but the cells of a row together."""
    row: list[Block] = []
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


def _is_row(text: str, row: Sequence[Block]) -> bool:
    """Whether it has several cells, each of which says one thing."""
    if len(row) < 2 or row[-1].end - row[0].start > _ROW_CHARACTERS:
        return False
    return all(len(split_sentences(text[start:end])) == 1 for start, end, _ in row)


def _line(text: str, block: Block) -> str:
    return " ".join(text[block.start : block.end].split())


def _split(text: str, block: Block, heading: str) -> Iterator[Sentence]:
    kind: SentenceKind = "cell" if block.kind in _IN_TABLES else "sentence"
    for first, last in _portions(text, block.start, block.end, _PORTION):
        for left, right in split_sentences(text[first:last]):
            yield Sentence(first + left, first + right, kind, heading)


def _whole(text: str, start: int, end: int, kind: SentenceKind, heading: str) -> Iterator[Sentence]:
    piece = text[start:end]
    bare = piece.strip()
    if bare:
        start += len(piece) - len(piece.lstrip())
        yield Sentence(start, start + len(bare), kind, heading)


def _portions(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """The block cut at blank lines into pieces of at least `size` characters."""
    while end - start > size:
        found = _BLANK_LINE.search(text, start + size, end)
        if not found:
            break
        yield start, found.end()
        start = found.end()
    yield start, end
