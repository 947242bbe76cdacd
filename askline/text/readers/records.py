"""What the CSV and JSONL readers share: a file whose rows are documents of their own."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ...errors import Problem
from .document import Blocks, Content, DocumentPart, UnreadableError
from .offsets import TextBuilder

__all__ = [
    "TEXT_FIELDS",
    "Piece",
    "RowsBuilder",
    "choose_field",
]

TEXT_FIELDS = ("text", "content", "body", "sentence", "passage")
"""Names of the field that holds the text, in order of preference, compared without case."""

Piece = tuple[str, int, int]
"""Text, with its start and end in the original."""

_MAX_PROBLEMS = 100  # reported one by one per file


class RowsBuilder:
    """Collects the rows of a file and the problems of those that cannot be read."""

    def __init__(self) -> None:
        self._builder = TextBuilder()
        self._blocks = Blocks()
        self._parts: list[DocumentPart] = []
        self._problems: list[Problem] = []
        self._unreported = 0

    def add(self, pieces: Iterable[Piece], part_id: str, title: str, row: int) -> None:
        """Append a row; one without text is ignored."""
        start = self._builder.length
        at = 0
        for piece in pieces:
            self._builder.add(*piece)
            at = piece[2]
        end = self._builder.length
        if end > start:
            self._blocks.add(start, end, "text")
            self._parts.append(DocumentPart(start, end, part_id, title, row))
            self._builder.insert("\n", at)

    def add_problem(self, line: int, message: str) -> None:
        """Record a row that is left out; after the first hundred, only their number."""
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(Problem("", line, message))
        else:
            self._unreported += 1

    def content(self, starts: array[int]) -> Content:
        """All rows that could be read; raises the first problem if there are none."""
        if self._problems and not self._parts:
            first = self._problems[0]
            raise UnreadableError(first.message, line=first.line)
        if self._unreported:
            message = f"{self._unreported:,} more rows were left out."
            self._problems.append(Problem("", 0, message))
        return Content(
            self._builder.text(),
            self._blocks,
            "line",
            starts,
            segments=self._builder.segments,
            parts=tuple(self._parts),
            problems=tuple(self._problems),
        )


def choose_field(names: Iterable[str], wanted: str | None, what: str) -> str:
    """The name of the field with the text: `wanted`, or else the first of `TEXT_FIELDS`."""
    found = list(names)
    if wanted is not None:
        if wanted in found:
            return wanted
        raise UnreadableError(f"No {what} {wanted!r}. Found: {_list_names(found)}.")
    by_lowercase = {name.strip().lower(): name for name in reversed(found)}
    for name in TEXT_FIELDS:
        if name in by_lowercase:
            return by_lowercase[name]
    raise UnreadableError(
        f"No {what} is named {', '.join(TEXT_FIELDS[:-1])} or {TEXT_FIELDS[-1]}. "
        f"Found: {_list_names(found)}. Name the one that holds the text."
    )


def _list_names(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > 20 else shown or "none"
