"""The kinds of files, of places in them, of blocks and of sentences."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = [
    "CELL_SEPARATOR",
    "QUESTION_LEVEL",
    "SENTENCE_KINDS",
    "BlockKind",
    "FileKind",
    "PlaceUnit",
    "SentenceKind",
]

FileKind = Literal[
    "text",
    "markdown",
    "rst",
    "asciidoc",
    "org",
    "latex",
    "notebook",
    "subtitles",
    "manpage",
    "mail",
    "html",
    "pdf",
    "docx",
    "pptx",
    "xlsx",
    "opendocument",
    "epub",
    "rtf",
    "jsonl",
    "csv",
    "json",
    "yaml",
    "settings",
    "xml",
    "log",
    "source",
]
PlaceUnit = Literal["line", "page", "paragraph", "cell", "message", "slide", "sheet", "chapter"]
BlockKind = Literal["text", "heading", "code", "cell", "row", "table", "columns", "item"]
"""
`item` is a paragraph of a list. In a table, the first cell of each row has the kind `row`, except
in the first row: there it is `columns` if the row is a header with the names of the columns, else
`table`. All other cells have the kind `cell`.
"""
SentenceKind = Literal["sentence", "heading", "code", "cell", "row", "columns"]
SENTENCE_KINDS: tuple[SentenceKind, ...] = get_args(SentenceKind)
"""An index stores the position in this tuple."""

CELL_SEPARATOR = " | "
"""Put between the cells of a row that is shown on one line. In the text, each cell is a line."""

QUESTION_LEVEL = 7
"""The level of a heading below all sections: a question of a FAQ, or a line in bold type."""
