"""
Find files in folders, read their bytes, and choose the reader of each format.

Limits and choices live here: which suffixes are known, how many bytes a file may have, which
folders are skipped.
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
from .document import Blocks, Content, FileKind, ParsedDocument, UnreadableError
from .offsets import line_starts
from .text_encoding import decode

__all__ = [
    "MAX_FILE_BYTES",
    "SUFFIXES",
    "SkippedLink",
    "file_kind",
    "find_files",
    "read_document",
    "read_documents",
    "read_plain_text",
]

MAX_FILE_BYTES = 256 * 2**20
"""The default limit for one file, because its text is held in memory more than once."""

SUFFIXES: dict[str, FileKind] = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".rst": "rst",
    ".rest": "rst",
    ".adoc": "asciidoc",
    ".asciidoc": "asciidoc",
    ".org": "org",
    ".tex": "latex",
    ".latex": "latex",
    ".ipynb": "notebook",
    ".srt": "subtitles",
    ".vtt": "subtitles",
    ".man": "manpage",
    **{f".{section}": "manpage" for section in range(1, 9)},
    ".eml": "mail",
    ".mbox": "mail",
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
"""The format for each file name suffix. A file with any other suffix is read as plain text."""

Paths = Iterable[str | os.PathLike[str]]

_STDIN = "-"
_STREAM_CHUNK_BYTES = 2**20
_SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", "CVS"))
_OUTSIDE = (
    "It is a link to a place outside the given folders and was skipped. Add that place too, or "
    "follow links (--follow-links)."
)
_VENV_MARKER = "pyvenv.cfg"  # every Python virtual environment has this file


class SkippedLink(Problem):
    """A link that leads out of the given folders and is not followed."""


def file_kind(path: str | os.PathLike[str]) -> FileKind | None:
    """The format that the suffix stands for, or None."""
    return SUFFIXES.get(Path(path).suffix.lower())


def find_files(
    paths: Paths,
    *,
    include_hidden: bool = False,
    all_suffixes: bool = False,
    follow_links: bool = False,
) -> Iterator[Path | Problem]:
    """
    The files under the paths, each once, sorted by name within a folder, and what is unreachable.

    A path to a file is taken whatever its suffix. In folders, files with a known suffix are taken;
    hidden names, version control, virtual environments and installed packages are skipped.
    `include_hidden` takes hidden names too; `all_suffixes` takes every file, to be read as plain
    text. Links are followed, also in circles, because each folder and file is identified by its
    real path. A link that leads out of the paths is a `SkippedLink`, unless `follow_links` is true.
    `-` is returned unchanged.
    """
    seen: set[str] = set()
    given_paths = list(paths)
    roots = None
    if not follow_links:
        roots = {os.path.realpath(Path(given).expanduser()) for given in given_paths}
    for given in given_paths:
        if os.fspath(given) == _STDIN:
            if _STDIN not in seen:
                seen.add(_STDIN)
                yield Path(_STDIN)
            continue
        yield from _walk(Path(given).expanduser(), seen, include_hidden, all_suffixes, roots)


def read_documents(
    paths: Paths,
    *,
    include_hidden: bool = False,
    all_suffixes: bool = False,
    text_field: str | None = None,
    max_bytes: int = MAX_FILE_BYTES,
) -> Iterator[ParsedDocument | Problem]:
    """Each file that `find_files` finds as a document, or its problems; bad rows are problems."""
    for found in find_files(paths, include_hidden=include_hidden, all_suffixes=all_suffixes):
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


def read_document(
    path: str | os.PathLike[str],
    *,
    text_field: str | None = None,
    max_bytes: int = MAX_FILE_BYTES,
) -> ParsedDocument:
    """
    Read a file in the format of its suffix, or as plain text; `-` is standard input.

    `text_field` is the CSV column or JSONL field that holds the text. Everything that is wrong is
    raised as one `DataError` whose problems name the file.
    """
    name = os.fspath(path)
    try:
        data = _read_bytes(name, max_bytes)
        kind = file_kind(name) or "text"
        content, encoding = _parse(data, kind, text_field, max_bytes)
        if not content.blocks:
            raise UnreadableError("It is empty or has no text. Leave it out.")
    except UnreadableError as error:
        raise DataError([Problem(name, error.line, str(error))]) from error
    except MissingExtraError:
        raise
    except Exception as error:  # a defect of a reader or a library must not stop other files
        raise DataError([Problem(name, 0, _failure(error))]) from error
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
    """One block with the offsets of the source. The sentence splitter handles its lines."""
    blocks = Blocks()
    blocks.add(0, len(source), "text")
    return Content(source, blocks, "line", line_starts(source))


def _failure(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "Reading it needs more memory than is available. Split it."
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"The reader of its format failed ({reason:.200}). Leave it out, and report the error."


def _parse(
    data: bytes, kind: FileKind, text_field: str | None, max_bytes: int
) -> tuple[Content, str | None]:
    """The content and the character encoding, which PDF, DOCX and e-mail do not have."""
    if kind == "pdf":
        from .pdf import read_pdf

        return read_pdf(data), None
    if kind == "mail":
        from .mail import read_mail

        return read_mail(data), None
    if kind == "docx":
        from .docx import read_docx

        return read_docx(data, max_bytes=max_bytes), None
    text, encoding = decode(data, use_declared=kind == "html")
    return _text_reader(kind, text_field)(text), encoding


def _text_reader(kind: FileKind, text_field: str | None) -> Callable[[str], Content]:
    """
    The reader of a format that is decoded before it is read.

    A reader is imported when its format is first read: together they take about 60 ms, which each
    reader process and each command would spend.
    """
    match kind:
        case "markdown":
            from .markdown import read_markdown

            return read_markdown
        case "rst":
            from .rst import read_rst

            return read_rst
        case "asciidoc":
            from .asciidoc import read_asciidoc

            return read_asciidoc
        case "org":
            from .org import read_org

            return read_org
        case "latex":
            from .latex import read_latex

            return read_latex
        case "notebook":
            from .notebook import read_notebook

            return read_notebook
        case "subtitles":
            from .subtitles import read_subtitles

            return read_subtitles
        case "manpage":
            from .manpage import read_manpage

            return read_manpage
        case "html":
            from .html import read_html

            return read_html
        case "jsonl":
            from .jsonl import read_jsonl

            return partial(read_jsonl, text_field=text_field)
        case "csv":
            from .csv import read_csv

            return partial(read_csv, text_field=text_field)
        case _:
            return read_plain_text


def _read_bytes(name: str, max_bytes: int) -> bytes:
    if name == _STDIN:
        return _read_stream(sys.stdin.buffer, max_bytes)
    try:
        with Path(name).expanduser().open("rb") as stream:
            before = os.fstat(stream.fileno())
            if stat.S_ISREG(before.st_mode) and before.st_size > max_bytes:
                raise _too_large(before.st_size, max_bytes)
            # One byte more than the size: if the file grows meanwhile, the check below notices.
            regular = stat.S_ISREG(before.st_mode)
            data = stream.read(before.st_size + 1) if regular else _read_stream(stream, max_bytes)
            after = os.fstat(stream.fileno())
    except OSError as error:
        raise UnreadableError(f"It cannot be read: {error.strerror or error}.") from error
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise UnreadableError("It changed while it was read. Try again.")
    return data


def _read_stream(stream: BinaryIO, max_bytes: int) -> bytes:
    """Read in chunks, because `read(max_bytes)` would allocate all of that memory at once."""
    data = bytearray()
    while chunk := stream.read(_STREAM_CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise _too_large(len(data), max_bytes)
    return bytes(data)


def _too_large(size: int, max_bytes: int) -> UnreadableError:
    return UnreadableError(
        f"A file may have at most {max_bytes:,} bytes, got {size:,} or more. Split it."
    )


def _walk(
    path: Path, seen: set[str], include_hidden: bool, all_suffixes: bool, roots: set[str] | None
) -> Iterator[Path | Problem]:
    stack = [path]  # no recursion: folders may be nested deeper than Python's call stack allows
    while stack:
        here = stack.pop()
        try:
            mode = here.stat().st_mode
            real = os.path.realpath(here)
            if real in seen:
                continue
            if roots is not None and here is not path and not _is_inside(real, roots):
                if all_suffixes or file_kind(here) or stat.S_ISDIR(mode):
                    yield SkippedLink(str(here), 0, _OUTSIDE)
                continue
            seen.add(real)
            if stat.S_ISDIR(mode):
                stack += reversed(_folder_entries(here, include_hidden))
                continue
        except OSError as error:
            if here is path or file_kind(here) or _is_folder(here):
                yield Problem(str(here), 0, _reason(here, error))
            continue
        given = here is path
        if not (given or all_suffixes or file_kind(here)):
            continue
        if stat.S_ISREG(mode):
            yield here
        elif given or file_kind(here):
            yield Problem(str(here), 0, "It is a device or a pipe, not a file. Use - for a pipe.")


def _is_inside(path: str, roots: set[str]) -> bool:
    """Whether a real path is one of the roots or below one."""
    while path not in roots:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _folder_entries(folder: Path, include_hidden: bool) -> list[Path]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    if _VENV_MARKER in names:
        return []
    return [
        folder / name
        for name in names
        if name not in _SKIPPED_FOLDERS and (include_hidden or not name.startswith("."))
    ]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _reason(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        if path.is_symlink():
            return "It is a link to a file that does not exist. Remove or correct it."
        return "There is no such file. Check the path."
    return f"It cannot be read: {error.strerror or error}."
