"""
Files and folders as text whose every character knows where it came from.

`walk` finds files, `read_document` reads one, `read_documents` does both, and `sentences` cuts a
document into candidates. One file for each format; what needs a library loads it when it is used.
"""

from __future__ import annotations

from .document import CELLS_APART, Block, Document, Part, Place, Sentence, sentences
from .files import MAX_BYTES, SUFFIXES, read_document, read_documents, walk

__all__ = [
    "CELLS_APART",
    "MAX_BYTES",
    "SUFFIXES",
    "Block",
    "Document",
    "Part",
    "Place",
    "Sentence",
    "read_document",
    "read_documents",
    "sentences",
    "walk",
]
