"""What the readers of CSV, JSONL and spreadsheets share: rows that are documents of their own."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...errors import NotReadReason, Problem
from .document import Blocks, Content, DocumentPart, UnreadableError
from .kinds import BlockKind
from .offsets import TextBuilder

__all__ = [
    "TEXT_FIELDS",
    "Piece",
    "RowFields",
    "RowsBuilder",
    "choose_fields",
]

TEXT_FIELDS = ("text", "content", "body", "sentence", "passage")
"""Names of the field that holds the text, in order of preference, compared without case."""
ANSWER_FIELDS = ("answer", "answers", "response", "reply")
"""Names of the field that holds the text of questions and answers."""
QUESTION_FIELDS = ("question", "questions", "query", "prompt")
"""Names of the field with the question, which is the title of its answer."""

Piece = tuple[str, int, int]
"""Text, with its start and end in the original."""

_MAX_PROBLEMS = 100  # reported one by one per file


class RowFields(NamedTuple):
    """The names of the fields of a row that are read."""

    texts: tuple[str, ...]
    """In the order of the file."""
    title: str | None
    id: str | None


class RowsBuilder:
    """Collects the rows of a file and the problems of those that cannot be read."""

    def __init__(self) -> None:
        self._builder = TextBuilder()
        self._blocks = Blocks()
        self._parts: list[DocumentPart] = []
        self._problems: list[Problem] = []
        self._unreported = 0

    def add(
        self,
        fields: Iterable[Iterable[Piece]],
        part_id: str,
        title: str,
        row: int,
        kind: BlockKind = "text",
    ) -> None:
        """
        Append a row with one block per field; one without text is ignored.

        `kind` is that of the first block. If it is not `text`, the others are cells.
        """
        start = end = self._builder.length
        at = 0
        for pieces in fields:
            if end > start and self._builder.length == end:
                self._builder.insert("\n", at)
            begin = self._builder.length
            for piece in pieces:
                self._builder.add(*piece)
                at = piece[2]
            if self._builder.length > begin:
                end = self._builder.length
                self._blocks.add(begin, end, kind)
                kind = "text" if kind == "text" else "cell"
        if end > start:
            self._parts.append(DocumentPart(start, end, part_id, title, row))
            if self._builder.length == end:
                self._builder.insert("\n", at)

    def add_problem(self, line: int, message: str, reason: NotReadReason = "damaged") -> None:
        """Record a row that is left out; after the first hundred, only their number."""
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(Problem("", line, message, reason))
        else:
            self._unreported += 1

    def content(self, starts: array[int]) -> Content:
        """All rows that could be read; raises the first problem if there are none."""
        if self._problems and not self._parts:
            first = self._problems[0]
            raise UnreadableError(first.message, line=first.line, reason=first.reason)
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


def choose_fields(names: Iterable[str], wanted: Sequence[str], what: str) -> RowFields:
    """
    The fields with the text: those in `wanted`, or else the first of `TEXT_FIELDS`.

    If there is none, an answer is the text and its question is the title. Names are compared
    without case; of equal names, the first counts. `what` is for messages: `column` or `field`.
    """
    found = list(names)
    by_lowercase = {name.strip().lower(): name for name in reversed(found)}

    def first(known: Iterable[str]) -> str | None:
        return next((by_lowercase[name] for name in known if name in by_lowercase), None)

    if wanted:
        chosen = {_wanted_field(name, found, by_lowercase, what) for name in wanted}
        texts = tuple(name for name in dict.fromkeys(found) if name in chosen)
    else:
        text = first(TEXT_FIELDS) or first(ANSWER_FIELDS)
        if text is None:
            raise UnreadableError(
                f"No {what} is named {', '.join(TEXT_FIELDS)} or {ANSWER_FIELDS[0]}. "
                f"Found: {_list_names(found)}. Name the one that holds the text (--column NAME).",
                reason="no column",
            )
        texts = (text,)
    is_answer = texts[0].strip().lower() in ANSWER_FIELDS
    title = (first(QUESTION_FIELDS) if is_answer or wanted else None) or first(["title"])
    return RowFields(texts, None if title in texts else title, first(["id"]))


def _wanted_field(
    name: str, found: Sequence[str], by_lowercase: Mapping[str, str], what: str
) -> str:
    if name in found:
        return name
    if name.strip().lower() in by_lowercase:
        return by_lowercase[name.strip().lower()]
    raise UnreadableError(
        f"No {what} {name!r}. Found: {_list_names(list(found))}.", reason="no column"
    )


def _list_names(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > 20 else shown or "none"
