"""
Files and folders as text whose every character knows where it came from.

`walk` finds files, `read_document` reads one, `read_documents` does both, and `sentences` cuts a
document into candidates. One file for each format; what needs a library loads it when it is used.
"""

from __future__ import annotations

from .document import (
    CELL_SEPARATOR,
    DocumentPart,
    ParsedDocument,
    Place,
    SentenceSpan,
    TextBlock,
    iter_sentences,
)
from .files import MAX_FILE_BYTES, SUFFIXES, find_files, read_document, read_documents

__all__ = [
    "CELL_SEPARATOR",
    "MAX_FILE_BYTES",
    "SUFFIXES",
    "DocumentPart",
    "ParsedDocument",
    "Place",
    "SentenceSpan",
    "TextBlock",
    "find_files",
    "iter_sentences",
    "read_document",
    "read_documents",
]
