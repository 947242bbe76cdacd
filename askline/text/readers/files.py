"""
One file to one `Document`: size, bytes, kind, and the reader of that kind.

Files and folders to documents: what is left out, in which order, and what went wrong.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ...errors import DataError, MissingExtraError, Problem
from .csv import read_csv
from .document import Blocks, Content, FileKind, ParsedDocument, UnreadableError
from .docx import read_docx
from .html import read_html
from .jsonl import read_jsonl
from .markdown import read_markdown
from .offsets import line_starts
from .pdf import read_pdf
from .text_encoding import decode

__all__ = [
    "MAX_FILE_BYTES",
    "SUFFIXES",
    "file_kind",
    "find_files",
    "read_document",
    "read_documents",
    "read_plain_text",
]

MAX_FILE_BYTES = 256 * 2**20
"""Of a file that is read by default, for its text must fit into memory whole, more than once."""

SUFFIXES: dict[str, FileKind] = {
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


def file_kind(path: str | os.PathLike[str]) -> FileKind | None:
    """The kind that the suffix tells, or None."""
    return SUFFIXES.get(Path(path).suffix.lower())


def read_document(
    path: str | os.PathLike[str],
    *,
    text_field: str | None = None,
    max_bytes: int = MAX_FILE_BYTES,
) -> ParsedDocument:
    """
    Read a file of any kind in `SUFFIXES`, or another as plain text; `-` is standard input.

    `text_field` names the column of csv and the field of jsonl that hold the text. Whatever is
    wrong is raised as a `DataError` whose problems name the file.
    """
    name = os.fspath(path)
    try:
        data = _read(name, max_bytes)
        kind = file_kind(name) or "text"
        content, encoding = _parse(data, kind, text_field, max_bytes)
        if not content.blocks:
            raise UnreadableError("It is empty or has no text. Leave it out.")
    except UnreadableError as error:
        raise DataError([Problem(name, error.line, str(error))]) from error
    return ParsedDocument(
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


def read_plain_text(source: str) -> Content:
    """One block whose offsets are those of the source. The sentence splitter reads its lines."""
    blocks = Blocks()
    blocks.add(0, len(source), "text")
    return Content(source, blocks, "line", line_starts(source))


def _parse(
    data: bytes, kind: FileKind, field: str | None, limit: int
) -> tuple[Content, str | None]:
    if kind == "pdf":
        return read_pdf(data), None
    if kind == "docx":
        return read_docx(data, limit=limit), None
    text, encoding = decode(data, declared=kind == "html")
    readers: dict[str, Callable[[str], Content]] = {
        "text": read_plain_text,
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
        raise UnreadableError(f"It cannot be read: {error.strerror or error}.") from error
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise UnreadableError("It changed while it was read. Try again.")
    return data


def _read_stream(stream: BinaryIO, limit: int) -> bytes:
    """In pieces, for reading up to a limit at once would take the memory for all of it."""
    data = bytearray()
    while piece := stream.read(_PIECE):
        data += piece
        if len(data) > limit:
            raise _too_large(len(data), limit)
    return bytes(data)


def _too_large(size: int, limit: int) -> UnreadableError:
    return UnreadableError(
        f"It has {size:,} bytes or more and at most {limit:,} are read. Split it."
    )


_LEFT_OUT = frozenset(("node_modules", "__pycache__", "CVS"))
_ENVIRONMENT = "pyvenv.cfg"  # the file that every virtual environment of Python has

Paths = Iterable[str | os.PathLike[str]]


def find_files(
    paths: Paths, *, hidden: bool = False, all_suffixes: bool = False
) -> Iterator[Path | Problem]:
    """
    The files under the paths, each once, in the order of their names; what cannot be reached.

    A file that is named is taken whatever it is called; folders give the files of known kinds,
    without hidden ones, version control, virtual environments and installed packages. `hidden`
    takes hidden names too, `all_suffixes` all suffixes, to be read as plain text. Links are
    followed, in circles too, for every folder and file counts by its real path. `-` comes back
    as it is.
    """
    seen: set[str] = set()
    for given in paths:
        if os.fspath(given) == "-":
            if "-" not in seen:
                seen.add("-")
                yield Path("-")
            continue
        yield from _walk_one(Path(given).expanduser(), seen, hidden, all_suffixes)


def read_documents(
    paths: Paths,
    *,
    hidden: bool = False,
    all_suffixes: bool = False,
    text_field: str | None = None,
    max_bytes: int = MAX_FILE_BYTES,
) -> Iterator[ParsedDocument | Problem]:
    """Each file that `walk` finds as a document, or what is wrong with it; rows left out too."""
    for found in find_files(paths, hidden=hidden, all_suffixes=all_suffixes):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            document = read_document(found, text_field=text_field, max_bytes=max_bytes)
        except DataError as error:
            yield from error.problems
        except MissingExtraError as error:
            yield Problem(str(found), 0, str(error))
        else:
            yield document
            yield from document.problems


def _walk_one(
    path: Path, seen: set[str], hidden: bool, all_suffixes: bool
) -> Iterator[Path | Problem]:
    stack = [path]  # not recursion: folders may lie deeper than calls
    while stack:
        here = stack.pop()
        try:
            mode = here.stat().st_mode
            real = os.path.realpath(here)
            if real in seen:
                continue
            seen.add(real)
            if stat.S_ISDIR(mode):
                stack += reversed(_inside(here, hidden))
                continue
        except OSError as error:
            if here is path or file_kind(here) or _is_folder(here):
                yield Problem(str(here), 0, _reason(here, error))
            continue
        named = here is path
        if not (named or all_suffixes or file_kind(here)):
            continue
        if stat.S_ISREG(mode):
            yield here
        elif named or file_kind(here):
            yield Problem(str(here), 0, "It is no file but a device or a pipe. Use - for a pipe.")


def _inside(folder: Path, hidden: bool) -> list[Path]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    if _ENVIRONMENT in names:
        return []
    return [
        folder / name
        for name in names
        if name not in _LEFT_OUT and (hidden or not name.startswith("."))
    ]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _reason(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        if path.is_symlink():
            return "It is a link that leads nowhere. Remove it or mend it."
        return "There is no such file. Check the path."
    return f"It cannot be read: {error.strerror or error}."
