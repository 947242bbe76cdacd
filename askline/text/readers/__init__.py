"""
Read files and folders into text with exact offsets back into the original.

`find_files` walks folders, `read_document` reads one file, `read_documents` does both, and
`iter_sentences` splits a document into candidates. One module per file format; a format that needs
a library imports it on first use.
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
from .files import (
    MAX_FILE_BYTES,
    SUFFIXES,
    find_files,
    read_document,
    read_documents,
    read_plain_text,
)

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
    "read_plain_text",
]
