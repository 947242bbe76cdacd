"""One file to one `Document`: size, bytes, kind, and the reader of that kind."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ...errors import DataError, Problem
from .content import Content, Unreadable
from .csv import read_csv
from .decoding import decode
from .document import Document, Kind
from .docx import read_docx
from .html import read_html
from .jsonl import read_jsonl
from .markdown import read_markdown
from .pdf import read_pdf
from .plain import read_plain

__all__ = ["MAX_BYTES", "SUFFIXES", "kind_of", "read_document"]

MAX_BYTES = 256 * 2**20
"""Of a file that is read by default, for its text must fit into memory whole, more than once."""

SUFFIXES: dict[str, Kind] = {
    ".txt": "text",
    ".text": "text",
    ".rst": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}
"""What a suffix says about a file; any other is read as plain text."""

_STDIN = "-"
_PIECE = 2**20


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """The kind that the suffix tells, or None."""
    return SUFFIXES.get(Path(path).suffix.lower())


def read_document(
    path: str | os.PathLike[str],
    *,
    text_field: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Document:
    """
    Read a file of any kind in `SUFFIXES`, or another as plain text; `-` is standard input.

    `text_field` names the column of csv and the field of jsonl that hold the text. Whatever is
    wrong is raised as a `DataError` whose problems name the file.
    """
    name = os.fspath(path)
    try:
        data = _read(name, max_bytes)
        kind = kind_of(name) or "text"
        content, encoding = _parse(data, kind, text_field, max_bytes)
        if not content.blocks:
            raise Unreadable("It is empty or has no text. Leave it out.")
    except Unreadable as error:
        raise DataError([Problem(name, error.line, str(error))]) from error
    return Document(
        name,
        kind,
        content.title or ("standard input" if name == _STDIN else Path(name).stem),
        content.text,
        hashlib.sha256(data).hexdigest(),
        encoding,
        content.blocks,
        content.unit,
        content.starts,
        content.segments,
        content.parts,
        tuple(replace(problem, path=name) for problem in content.problems),
    )


def _parse(data: bytes, kind: Kind, field: str | None, limit: int) -> tuple[Content, str | None]:
    if kind == "pdf":
        return read_pdf(data), None
    if kind == "docx":
        return read_docx(data, limit=limit), None
    text, encoding = decode(data, declared=kind == "html")
    readers: dict[str, Callable[[str], Content]] = {
        "text": read_plain,
        "markdown": read_markdown,
        "html": read_html,
        "jsonl": partial(read_jsonl, field=field),
        "csv": partial(read_csv, field=field),
    }
    return readers[kind](text), encoding


def _read(name: str, limit: int) -> bytes:
    if name == _STDIN:
        return _read_stream(sys.stdin.buffer, limit)
    try:
        with Path(name).expanduser().open("rb") as stream:
            before = os.fstat(stream.fileno())
            if stat.S_ISREG(before.st_mode) and before.st_size > limit:
                raise _too_large(before.st_size, limit)
            # One byte more than it should have: a file that grows is told by its times below.
            regular = stat.S_ISREG(before.st_mode)
            data = stream.read(before.st_size + 1) if regular else _read_stream(stream, limit)
            after = os.fstat(stream.fileno())
    except OSError as error:
        raise Unreadable(f"It cannot be read: {error.strerror or error}.") from error
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise Unreadable("It changed while it was read. Try again.")
    return data


def _read_stream(stream: BinaryIO, limit: int) -> bytes:
    """In pieces, for reading up to a limit at once would take the memory for all of it."""
    data = bytearray()
    while piece := stream.read(_PIECE):
        data += piece
        if len(data) > limit:
            raise _too_large(len(data), limit)
    return bytes(data)


def _too_large(size: int, limit: int) -> Unreadable:
    return Unreadable(f"It has {size:,} bytes or more and at most {limit:,} are read. Split it.")
