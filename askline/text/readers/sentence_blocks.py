"""
The sentences of a document as an index stores them: records, columns, and packed blocks.

Reader processes make columns, because that is faster than a record per sentence, and pack them into
blocks, because a store writes and reads one row per block faster than one per sentence.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, count, pairwise
from typing import NamedTuple

from .kinds import SENTENCE_KINDS

__all__ = [
    "CODE_KIND",
    "HEADING_KINDS",
    "NO_CONTEXT",
    "Context",
    "RowRecord",
    "SentenceBlocks",
    "SentenceColumns",
    "SentenceRecord",
    "unpack_block",
]

CODE_KIND = SENTENCE_KINDS.index("code")
HEADING_KINDS = frozenset(SENTENCE_KINDS.index(kind) for kind in ("heading", "columns"))

Context = tuple[str, str, str]
"""The heading, the path of headings with one per line, and the lead-in."""
NO_CONTEXT: Context = ("", "", "")

_HEADER = struct.Struct("<II")  # the number of sentences, and the bytes of the contexts
_COLUMNS = 5  # starts, ends, numbers, contexts and lengths, in four bytes each
_BLOCK_CHARACTERS = 8_000
_BLOCK_SENTENCES = 250


class SentenceRecord(NamedTuple):
    """A sentence of a document, as an index stores it."""

    ordinal: int
    """The position of the sentence in its document, from 0."""
    start: int
    end: int
    """Characters of the original."""
    number: int
    """The line, page, paragraph, slide or other unit, from 1."""
    kind: int
    """The position in SENTENCE_KINDS."""
    heading: str
    """The nearest heading above, with the names of the columns in a table."""
    text: str
    path: str = ""
    """The headings above from the highest to the nearest, one per line."""
    lead_in: str = ""
    """The sentence with a colon that introduces the list or table of this sentence."""

    @property
    def headings(self) -> tuple[str, ...]:
        """The path of headings from the highest to the nearest."""
        return tuple(self.path.split("\n")) if self.path else ()

    @property
    def is_heading(self) -> bool:
        """True for a heading and for the row that names the columns of a table."""
        return self.kind in HEADING_KINDS

    @property
    def is_code(self) -> bool:
        """True for a code block, which is shown beside an answer and is never one."""
        return self.kind == CODE_KIND

    @property
    def is_candidate(self) -> bool:
        """Whether it can be an answer."""
        return not (self.is_heading or self.is_code)


class RowRecord(NamedTuple):
    """A row of a csv or jsonl file, or a message of a mailbox."""

    start: int
    """The first character of its text in the original."""
    row: int
    id: str
    """The row's own id; empty if it has none."""


class SentenceColumns:
    """The sentences of a document, a column per field. Iteration gives the records."""

    def __init__(
        self,
        starts: Sequence[int],
        ends: Sequence[int],
        numbers: Sequence[int],
        kinds: Sequence[int],
        contexts: Sequence[Context],
        context_of: Sequence[int],
        texts: Sequence[str],
    ) -> None:
        self.starts = starts
        self.ends = ends
        """Offsets in the original."""
        self.numbers = numbers
        """Lines, pages or other units, from 1."""
        self.kinds = kinds
        """Positions in SENTENCE_KINDS."""
        self.contexts = contexts
        """Distinct contexts in the order of their first sentence; the first is empty."""
        self.context_of = context_of
        """The position in `contexts` of each sentence."""
        self.texts = texts

    @classmethod
    def of(cls, sentences: Iterable[SentenceRecord]) -> SentenceColumns:
        """The columns of sentences in order, with ordinals from 0."""
        if isinstance(sentences, SentenceColumns):
            return sentences
        numbers: dict[Context, int] = {NO_CONTEXT: 0}
        rows = [
            (*place, numbers.setdefault((heading, path, lead_in), len(numbers)), text)
            for _, *place, heading, text, path, lead_in in sentences
        ]
        columns = tuple(zip(*rows, strict=True)) if rows else ((),) * 6
        starts, ends, units, kinds, context_of, texts = columns
        return cls(starts, ends, units, kinds, list(numbers), context_of, texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[SentenceRecord]:
        for ordinal, start, end, number, kind, context, text in zip(
            count(),
            *(self.starts, self.ends, self.numbers, self.kinds, self.context_of, self.texts),
        ):
            heading, path, lead_in = self.contexts[context]
            yield SentenceRecord(ordinal, start, end, number, kind, heading, text, path, lead_in)

    def to_blocks(self) -> SentenceBlocks:
        """The same sentences, packed."""
        lengths = list(map(len, self.texts))
        totals = list(accumulate(lengths))
        result = SentenceBlocks([], [], len(lengths))
        first = 0
        while first < len(lengths):
            limit = totals[first] - lengths[first] + _BLOCK_CHARACTERS
            end = min(bisect_left(totals, limit, first) + 1, first + _BLOCK_SENTENCES, len(lengths))
            result.firsts.append(first)
            result.blocks.append(self._pack(first, end, lengths[first:end]))
            first = end
        return result

    def _pack(self, first: int, end: int, lengths: list[int]) -> bytes:
        contexts = self.context_of[first:end]
        numbers = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
        context_bytes = json.dumps([self.contexts[each] for each in numbers]).encode()
        columns = array("I", self.starts[first:end])
        columns.extend(self.ends[first:end])
        columns.extend(self.numbers[first:end])
        columns.extend(map(numbers.__getitem__, contexts))
        columns.extend(lengths)
        return b"".join(
            (
                _HEADER.pack(end - first, len(context_bytes)),
                _little_endian(columns).tobytes(),
                bytes(self.kinds[first:end]),
                context_bytes,
                "".join(self.texts[first:end]).encode(),
            )
        )


class SentenceBlocks:
    """
    The sentences of a document in blocks of about 8,000 characters. Iteration gives the records.

    A block takes one row of a store. It has the columns of its sentences, the contexts that they
    use, as JSON, and their texts one behind the other.
    """

    def __init__(self, firsts: list[int], blocks: list[bytes], count: int) -> None:
        self.firsts = firsts
        """The ordinal of the first sentence of each block."""
        self.blocks = blocks
        self._count = count

    @classmethod
    def of(cls, sentences: Iterable[SentenceRecord]) -> SentenceBlocks:
        """The blocks of sentences in order, with ordinals from 0."""
        if isinstance(sentences, SentenceBlocks):
            return sentences
        return SentenceColumns.of(sentences).to_blocks()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SentenceRecord]:
        for first, block in zip(self.firsts, self.blocks, strict=True):
            yield from unpack_block(block, first)


def unpack_block(
    block: bytes, block_first: int, first: int = 0, last: int = 2**62
) -> list[SentenceRecord]:
    """
    Sentences `first` to `last` of a document, both included, as far as they are in a block.

    `block_first` is the ordinal of the first sentence of the block. ValueError if a damaged block
    has no such structure. Damaged texts are returned as far as they can be read.
    """
    try:
        count, context_bytes = _HEADER.unpack_from(block)
        texts_at = _HEADER.size + (4 * _COLUMNS + 1) * count + context_bytes
        columns = array("I")
        columns.frombytes(block[_HEADER.size : _HEADER.size + 4 * _COLUMNS * count])
        _little_endian(columns)
        start = min(max(first - block_first, 0), count)
        stop = max(min(last + 1 - block_first, count), start)
        starts, ends, numbers, context_of, lengths = (
            columns[at + start : at + stop] for at in range(0, _COLUMNS * count, count or 1)
        )
        kinds_at = _HEADER.size + 4 * _COLUMNS * count
        kinds = block[kinds_at + start : kinds_at + stop]
        contexts = json.loads(block[texts_at - context_bytes : texts_at])
        texts = block[texts_at:].decode("utf-8", "replace")
        at = sum(columns[(_COLUMNS - 1) * count : (_COLUMNS - 1) * count + start])
        bounds = accumulate(lengths, initial=at)
        return [
            SentenceRecord(
                ordinal, left, right, number, kind, heading, texts[begin:end], path, lead
            )
            for ordinal, left, right, number, kind, (heading, path, lead), (begin, end) in zip(
                range(block_first + start, block_first + stop),
                *(starts, ends, numbers, kinds, map(contexts.__getitem__, context_of)),
                pairwise(bounds),
                strict=True,
            )
        ]
    except (struct.error, IndexError, TypeError, AttributeError) as error:
        raise ValueError("The block has not the structure of one.") from error


def _little_endian(numbers: array[int]) -> array[int]:
    """The same array with the bytes of its numbers in the order of a store, or back."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
