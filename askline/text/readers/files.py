"""
Read the bytes of a file, and choose the reader of its format.

`file_kinds` has the suffixes, and `folders` finds the files of folders.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from io import FileIO
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from ...errors import DataError, MissingExtraError, Problem
from .document import Content, ParsedDocument, UnreadableError
from .file_kinds import (
    SniffedKind,
    decompressed_name,
    file_kind,
    is_gzip,
    language_suffix,
    sniff,
)
from .folders import DEFAULT_SELECTION, FileSelection, SkippedFile, find_files
from .kinds import FileKind
from .limits import MAX_FILE_BYTES
from .plain_text import read_plain_text
from .text_encoding import decode

__all__ = [
    "read_document",
    "read_documents",
]


Paths = Iterable[str | os.PathLike[str]]

_STDIN = "-"
_STREAM_CHUNK_BYTES = 2**20
_BYTE_FORMATS = ("pdf", "mail")
_PACKED_FORMATS = ("docx", "pptx", "epub")
_PACKED_TABLES = ("xlsx", "opendocument")
_MODULES: dict[FileKind, str] = {"log": "plain_text", "source": "source_code"}
_FUNCTIONS: dict[FileKind, str] = {"source": "source_code"}


def read_documents(
    paths: Paths,
    *,
    selection: FileSelection = DEFAULT_SELECTION,
    columns: Sequence[str] = (),
    max_bytes: int = MAX_FILE_BYTES,
) -> Iterator[ParsedDocument | Problem]:
    """Each file that `find_files` finds as a document, or its problems; bad rows are problems."""
    for found in find_files(paths, selection):
        if isinstance(found, SkippedFile):
            continue
        if isinstance(found, Problem):
            yield found
            continue
        try:
            document = read_document(found, columns=columns, max_bytes=max_bytes)
        except DataError as error:
            yield from error.problems
        except MissingExtraError as error:
            yield Problem(str(found), 0, str(error))
        else:
            yield document
            yield from document.problems


def read_document(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    max_bytes: int = MAX_FILE_BYTES,
) -> ParsedDocument:
    """
    Read a file in the format of its suffix, or as plain text; `-` is standard input.

    `columns` are the CSV columns or JSONL fields that hold the text. Everything that is wrong is
    raised as one `DataError` whose problems name the file.
    """
    name = os.fspath(path)
    try:
        data = _read_bytes(name, max_bytes)
        decompressed = _decompress(data, max_bytes) if is_gzip(name) else data
        kind, language = _kind(name, decompressed)
        content, encoding = _parse(decompressed, kind, language, columns, max_bytes)
        if not content.blocks:
            raise UnreadableError("It is empty or has no text. Leave it out.", reason="empty")
    except UnreadableError as error:
        raise DataError([Problem(name, error.line, str(error), error.reason)]) from error
    except MissingExtraError:
        raise
    except Exception as error:  # a defect of a reader or a library must not stop other files
        raise DataError([Problem(name, 0, _failure(error))]) from error
    return ParsedDocument(
        name,
        kind,
        content.title or _title(name),
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


def _title(name: str) -> str:
    return "standard input" if name == _STDIN else Path(decompressed_name(name)).stem


def _failure(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "Reading it needs more memory than is available. Split it."
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"The reader of its format failed ({reason:.200}). Leave it out, and report the error."


def _kind(name: str, data: bytes) -> SniffedKind:
    """The format by the name, or else by the content."""
    kind = file_kind(name)
    if kind is not None:
        return SniffedKind(kind, language_suffix(name))
    # Binary data is refused by `decode`, with a message.
    is_file = name != _STDIN
    return (sniff(data) if is_file else None) or SniffedKind("text")


def _parse(
    data: bytes, kind: FileKind, language: str, columns: Sequence[str], max_bytes: int
) -> tuple[Content, str | None]:
    """The content and the character encoding, which binary formats and e-mail do not have."""
    read: Callable[..., Content] = read_plain_text if kind == "text" else _reader(kind)
    if kind in _BYTE_FORMATS:
        return read(data), None
    if kind in _PACKED_FORMATS:
        return read(data, max_bytes=max_bytes), None
    if kind in _PACKED_TABLES:
        return read(data, max_bytes=max_bytes, columns=columns), None
    text, encoding, problems = decode(data, use_declared=kind in ("html", "xml"))
    if kind in ("jsonl", "csv"):
        content = read(text, columns=columns)
    elif kind == "source":
        content = read(text, suffix=language)
    else:
        content = read(text)
    return replace(content, problems=(*problems, *content.problems)), encoding


def _reader(kind: FileKind) -> Callable[..., Content]:
    """
    The reader of a format: the function `read_KIND` in the module of that name.

    A reader is imported when its format is first read: together they take about 60 ms, which each
    reader process and each command would spend.
    """
    reader: Callable[..., Content] = getattr(_module(kind), f"read_{_FUNCTIONS.get(kind, kind)}")
    return reader


@cache
def _module(kind: FileKind) -> ModuleType:
    return import_module(f".{_MODULES.get(kind, kind)}", __package__)


def _read_bytes(name: str, max_bytes: int) -> bytes:
    if name == _STDIN:
        return _read_stream(sys.stdin.buffer, max_bytes)
    try:
        # Without a buffer, which takes further system calls.
        with FileIO(os.path.expanduser(name)) as stream:
            before = os.fstat(stream.fileno())
            if stat.S_ISREG(before.st_mode) and before.st_size > max_bytes:
                raise _too_large(before.st_size, max_bytes)
            if stat.S_ISREG(before.st_mode):
                data = _read_regular(stream, before.st_size)
            else:
                data = _read_stream(stream, max_bytes)
            after = os.fstat(stream.fileno())
    except OSError as error:
        raise UnreadableError(
            f"It cannot be read: {error.strerror or error}.", reason="unreachable"
        ) from error
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise UnreadableError("It changed while it was read. Try again.", reason="unreachable")
    return data


def _read_regular(stream: FileIO, size: int) -> bytes:
    """At most one byte more than the size: if the file grows, a comparison of its states tells."""
    data = stream.read(size + 1)
    if len(data) >= size:
        return data
    parts = [data]  # the system reads at most 2 GB at a time, and a network may give less
    while data and size > 0:
        size -= len(data)
        data = stream.read(size + 1)
        parts.append(data)
    return b"".join(parts)


def _read_stream(stream: BinaryIO | FileIO | gzip.GzipFile, max_bytes: int) -> bytes:
    """Read in chunks, because `read(max_bytes)` would allocate all of that memory at once."""
    data = bytearray()
    while chunk := stream.read(_STREAM_CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise _too_large(len(data), max_bytes)
    return bytes(data)


def _decompress(data: bytes, max_bytes: int) -> bytes:
    """The content of a gzip file with all of its members."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return _read_stream(stream, max_bytes)
    except (EOFError, OSError, zlib.error) as error:
        raise UnreadableError(
            f"It is not a whole gzip file ({error}). Copy or compress it again.", reason="damaged"
        ) from error


def _too_large(size: int, max_bytes: int) -> UnreadableError:
    return UnreadableError(
        f"A file may have at most {max_bytes:,} bytes, got {size:,} or more. Split it.",
        reason="too large",
    )
