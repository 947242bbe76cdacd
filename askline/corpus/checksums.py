"""
Checksums of what the store holds: one per document, per block of sentences and per row of a table.

CRC-32 finds every change within 32 neighboring bits of a text, and misses few others. A
block is checked without the rest of its document, so that a question checks only what it reads.
The shared store, and documents of earlier versions, have a checksum per sentence.
The id of the document is part of each checksum, so that a record of another document is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from ..text.readers.sentence_blocks import SentenceColumns
from .schema import RowRecord, SentenceRecord

__all__ = [
    "block_checksum",
    "context_checksum",
    "document_checksum",
    "row_checksum",
    "sentence_checksum",
    "sentence_checksums",
]

_32_BITS = 0xFFFFFFFF


def document_checksum(document_id: int, columns: Iterable[str | int | None]) -> int:
    """The checksum of the columns of a document that do not change while it is stored."""
    # SQLite stores a truth value as an integer.
    values = [int(value) if isinstance(value, bool) else value for value in columns]
    return crc32("\0".join(map(str, [document_id, *values])).encode())


def block_checksum(document_id: int, first: int, block: bytes) -> int:
    """The checksum of a block of sentences, from its document and its first sentence."""
    return crc32(block, (document_id * 0x9E3779B1 + first * 0x85EBCA77) & _32_BITS)


def context_checksum(document_id: int, heading: str, path: str = "", lead_in: str = "") -> int:
    """
    The part of a sentence's checksum that all sentences with the same context share.

    Without a path and a lead-in, it is what earlier versions stored.
    """
    checksum = crc32(heading.encode(), document_id & _32_BITS)
    return crc32(lead_in.encode(), crc32(path.encode(), checksum))


def sentence_checksum(sentence: SentenceRecord, context: int) -> int:
    """The checksum of a sentence and its place, from that of its document and context."""
    ordinal, start, end, number, kind, _, text, _, _ = sentence
    # The place is mixed by multiplication, because formatting it would slow down indexing. An odd
    # factor keeps every bit of a number.
    place = (8 * ordinal + kind) * 0x9E3779B1 + start * 0x85EBCA77 + end * 0xC2B2AE3D
    return crc32(text.encode(), (place + number * 0x27D4EB2F + context) & _32_BITS)


def sentence_checksums(sentences: SentenceColumns, contexts: Sequence[int]) -> list[int]:
    """The `sentence_checksum` of all sentences of a document, from those of its contexts."""
    return [
        crc32(
            text,
            (
                (8 * ordinal + kind) * 0x9E3779B1
                + start * 0x85EBCA77
                + end * 0xC2B2AE3D
                + number * 0x27D4EB2F
                + contexts[context]
            )
            & _32_BITS,
        )
        for ordinal, start, end, number, kind, context, text in zip(
            range(len(sentences)),
            sentences.starts,
            sentences.ends,
            sentences.numbers,
            sentences.kinds,
            sentences.context_of,
            map(str.encode, sentences.texts),
            strict=True,
        )
    ]


def row_checksum(document_id: int, row: RowRecord) -> int:
    """The checksum of a row of a csv or jsonl file."""
    return crc32(f"{document_id} {row.start} {row.row} {row.id}".encode())
