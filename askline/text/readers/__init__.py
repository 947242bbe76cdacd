"""
Read files and folders into text with exact offsets back into the original.

`find_files` walks folders, `read_document` reads one file, `read_documents` does both, and
`iter_sentences` splits a document into candidates. `ReaderPool` does the reading and splitting in
child processes, within limits of time and memory. One module per file format; a format that needs a
library imports it on first use. Names are imported when first used: a stored corpus is searched
without readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_imports import lazy_imports

if TYPE_CHECKING:
    from .document import (
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
    from .files import read_document, read_documents
    from .folders import FileSelection, SkippedFile, SkippedLink, find_files
    from .isolation import FileContent, ReaderPool, ReadLimitError, read_content
    from .kinds import CELL_SEPARATOR
    from .limits import MAX_FILE_BYTES, ReadLimits
    from .plain_text import read_plain_text
    from .prepared import PreparedFile, prepare_file

_MODULES = {
    "document": (
        *("DocumentPart", "ParsedDocument", "Place", "SentenceContext"),
        *("SentenceSpan", "Sentences", "TextBlock", "iter_sentences", "split_document"),
    ),
    "file_kinds": ("SUFFIXES", "file_kind"),
    "files": ("read_document", "read_documents"),
    "folders": ("FileSelection", "SkippedFile", "SkippedLink", "find_files"),
    "isolation": ("FileContent", "ReadLimitError", "ReaderPool", "read_content"),
    "kinds": ("CELL_SEPARATOR",),
    "limits": ("MAX_FILE_BYTES", "ReadLimits"),
    "plain_text": ("read_plain_text",),
    "prepared": ("PreparedFile", "prepare_file"),
}

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


__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
