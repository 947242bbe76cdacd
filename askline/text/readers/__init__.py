"""
Read files and folders into text with exact offsets back into the original.

`find_files` walks folders, `read_document` reads one file, `read_documents` does both, and
`iter_sentences` splits a document into candidates. `ReaderPool` does the reading and splitting in
child processes, within limits of time and memory. One module per file format; a format that needs a
library imports it on first use.
"""

from __future__ import annotations

from .document import (
    CELL_SEPARATOR,
    DocumentPart,
    ParsedDocument,
    Place,
    SentenceContext,
    Sentences,
    SentenceSpan,
    TextBlock,
    iter_sentences,
    split_document,
)
from .file_kinds import SUFFIXES, file_kind
from .files import MAX_FILE_BYTES, read_document, read_documents
from .folders import FileSelection, SkippedFile, SkippedLink, find_files
from .isolation import FileContent, ReaderPool, ReadLimitError, ReadLimits, read_content
from .plain_text import read_plain_text
from .prepared import PreparedFile, prepare_file

__all__ = [
    "CELL_SEPARATOR",
    "MAX_FILE_BYTES",
    "SUFFIXES",
    "DocumentPart",
    "FileContent",
    "FileSelection",
    "ParsedDocument",
    "Place",
    "PreparedFile",
    "ReadLimitError",
    "ReadLimits",
    "ReaderPool",
    "SentenceContext",
    "SentenceSpan",
    "Sentences",
    "SkippedFile",
    "SkippedLink",
    "TextBlock",
    "file_kind",
    "find_files",
    "iter_sentences",
    "prepare_file",
    "read_content",
    "read_document",
    "read_documents",
    "read_plain_text",
    "split_document",
]
