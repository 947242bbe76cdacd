"""Rows of figures as a Markdown table that is also aligned when read as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..errors import InputError
from .evaluate import Evaluation

__all__ = [
    "Cell",
    "evaluation_rows",
    "markdown_table",
]

Cell: TypeAlias = str | int | float | None
"""A text, a count, a figure, or nothing known."""


def evaluation_rows(
    evaluations: Sequence[Evaluation],
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """A header and a row for each evaluation, for any kind of table; measures in percent."""
    names = list(dict.fromkeys(name for each in evaluations for name in each.values))
    header = ("ranker", "set", *names, "questions", "ms p50", "ms p95")
    rows: list[tuple[Cell, ...]] = []
    for each in evaluations:
        percent, ms = each.percent, each.ms_per_question
        figures = [percent.get(name) for name in names]
        rows.append(
            (each.ranker, each.question_set, *figures, len(each.seconds), ms["p50"], ms["p95"])
        )
    return header, rows


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], *, digits: int = 2
) -> str:
    """Columns that hold numbers only are set to the right; None is a dash. Ends without newline."""
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(
                f"Expected {len(header)} cells in each row, got {len(row)} in row {number}."
            )
    numeric = [
        bool(rows) and all(not isinstance(row[column], str) for row in rows)
        for column in range(len(header))
    ]
    lines = [
        [_text(cell, digits) for cell in header],
        *([_text(cell, digits) for cell in row] for row in rows),
    ]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(header))]
    rule = [
        "-" * (width - right) + ":" * right for width, right in zip(widths, numeric, strict=True)
    ]
    lines.insert(1, rule)
    return "\n".join(_line(line, widths, numeric) for line in lines)


def _text(cell: Cell, digits: int) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    return " ".join(str(cell).replace("|", "\\|").split())


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return f"| {' | '.join(padded)} |"
