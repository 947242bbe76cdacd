"""What csv and jsonl share: rows that are documents of their own inside one file."""

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
"""Where the text of a row is looked for, first come first, in any case of letters."""

Piece = tuple[str, int, int]
"""Text, and its span in the original."""

_TOLD = 100  # of the rows of a file that are left out


class RowsBuilder:
    """Rows one by one, and the problems of those that were left out."""

    def __init__(self) -> None:
        self._builder = TextBuilder()
        self._blocks = Blocks()
        self._parts: list[DocumentPart] = []
        self._problems: list[Problem] = []
        self._more = 0

    def add(self, pieces: Iterable[Piece], part_id: str, title: str, row: int) -> None:
        """A row; one without text leaves nothing behind."""
        start = self._builder.length
        at = 0
        for piece in pieces:
            self._builder.add(*piece)
            at = piece[2]
        end = self._builder.length
        if end > start:
            self._blocks.add(start, end, "text")
            self._parts.append(DocumentPart(start, end, part_id, title, row))
            self._builder.gap("\n", at)

    def problem(self, line: int, message: str) -> None:
        """A row that is left out; the first hundred are told one by one."""
        if len(self._problems) < _TOLD:
            self._problems.append(Problem("", line, message))
        else:
            self._more += 1

    def content(self, starts: array[int]) -> Content:
        """Everything that could be read; where nothing could, the first problem is raised."""
        if self._problems and not self._parts:
            first = self._problems[0]
            raise UnreadableError(first.message, line=first.line)
        if self._more:
            self._problems.append(Problem("", 0, f"{self._more:,} more rows were left out."))
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
    """The field with the text: the one asked for, or the first of the usual names."""
    found = list(names)
    if wanted is not None:
        if wanted in found:
            return wanted
        raise UnreadableError(f"No {what} {wanted!r}. There: {_listed(found)}.")
    usual = {name.strip().lower(): name for name in reversed(found)}
    for name in TEXT_FIELDS:
        if name in usual:
            return usual[name]
    raise UnreadableError(
        f"No {what} is called {', '.join(TEXT_FIELDS[:-1])} or {TEXT_FIELDS[-1]}. "
        f"There: {_listed(found)}. Name the one that holds the text."
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > 20 else shown or "none"
