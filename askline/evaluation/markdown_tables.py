"""Markdown tables whose columns are also aligned as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..errors import InputError
from .ranker_evaluation import Evaluation

__all__ = [
    "Cell",
    "evaluation_rows",
    "markdown_table",
]

Cell: TypeAlias = str | int | float | None
"""A text, a count, a value, or None for an unknown value."""


def evaluation_rows(
    evaluations: Sequence[Evaluation],
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """A header and one row per evaluation; measures in percent, None if not evaluated."""
    names = list(dict.fromkeys(name for evaluation in evaluations for name in evaluation.values))
    header = ("ranker", "set", *names, "questions", "ms p50", "ms p95")
    rows: list[tuple[Cell, ...]] = []
    for evaluation in evaluations:
        percent, ms = evaluation.percent, evaluation.ms_per_question
        rows.append(
            (
                evaluation.ranker,
                evaluation.question_set,
                *(percent.get(name) for name in names),
                len(evaluation.seconds),
                ms["p50"],
                ms["p95"],
            )
        )
    return header, rows


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], *, digits: int = 2
) -> str:
    """Numeric columns are aligned to the right; None is a dash. There is no newline at the end."""
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(
                f"Expected {len(header)} cells per row as in the header, got {len(row)} in row "
                f"{number}."
            )
    numeric = [
        bool(rows) and all(not isinstance(row[column], str) for row in rows)
        for column in range(len(header))
    ]
    lines = [
        [_format_cell(cell, digits) for cell in header],
        *([_format_cell(cell, digits) for cell in row] for row in rows),
    ]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(header))]
    rule = [
        "-" * (width - right) + ":" * right for width, right in zip(widths, numeric, strict=True)
    ]
    lines.insert(1, rule)
    return "\n".join(_format_row(line, widths, numeric) for line in lines)


def _format_cell(cell: Cell, digits: int) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    return " ".join(str(cell).replace("|", "\\|").split())


def _format_row(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return f"| {' | '.join(padded)} |"
