"""The sentences of a document, block by block, so that none runs across a heading or a cell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..sentences import split_sentences
from .document import Document, Sentence, SentenceKind

__all__ = ["sentences"]

_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")
_PORTION = 2**16  # characters split at a time, so that memory stays small beside the text


def sentences(document: Document) -> Iterator[Sentence]:
    """
    Every sentence, in order, each with its kind and the nearest heading above it.

    Spans do not overlap and lie within one block. A heading is one sentence; code is cut at blank
    lines alone; cells are split as text is.
    """
    heading = ""
    parts = iter(document.parts)
    part = next(parts, None)
    for start, end, kind in document.blocks:
        while part is not None and start >= part.start:
            heading, part = part.title, next(parts, None)
        if kind == "heading":
            yield from _whole(document.text, start, end, "heading", heading)
            heading = " ".join(document.text[start:end].split())
        elif kind == "code":
            for first, last in _portions(document.text, start, end, 1):
                yield from _whole(document.text, first, last, "code", heading)
        else:
            shown: SentenceKind = "cell" if kind == "cell" else "sentence"
            for first, last in _portions(document.text, start, end, _PORTION):
                for left, right in split_sentences(document.text[first:last]):
                    yield Sentence(first + left, first + right, shown, heading)


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
