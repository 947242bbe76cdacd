"""
Evaluate a ranker on a labeled question set, and format values as a Markdown table.

The columns of the table are also aligned as plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

import numpy as np

from ..errors import InputError, RankerError
from ..rankers.base import Ranker
from ..types import Hit, Question, QuestionSet
from .measures import DEFAULT_MEASURES, FloatArray, parse_measures, score_run
from .runs import Run

__all__ = [
    "Cell",
    "Evaluation",
    "evaluate",
    "markdown_table",
]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The results of one ranker on one question set. Arrays are in the order of the questions."""

    ranker: str
    """The ranker as a spec text."""
    question_set: str
    """The name of the set."""
    values: Mapping[str, FloatArray]
    """Measure name → one fraction per question, 0 to 1."""
    seconds: FloatArray
    """The time of `rank`, per question."""
    candidates: int
    """The number of candidates over all questions."""
    run: Run

    def __post_init__(self) -> None:
        for array in (self.seconds, *self.values.values()):
            array.setflags(write=False)

    @property
    def question_ids(self) -> tuple[str, ...]:
        """The ids of the questions, in the order of the arrays."""
        return tuple(self.run.rankings)

    @property
    def percent(self) -> dict[str, float]:
        """Measure name → the mean over all questions, in percent."""
        return {name: 100 * float(values.mean()) for name, values in self.values.items()}

    @property
    def ms_per_question(self) -> dict[str, float]:
        """The median and the 95th percentile of `seconds`, in milliseconds."""
        p50, p95 = np.percentile(self.seconds, [50, 95])
        return {"p50": 1000 * float(p50), "p95": 1000 * float(p95)}

    def as_dict(self) -> dict[str, object]:
        """One flat object for JSON; measures in percent."""
        return {
            "ranker": self.ranker,
            "question_set": self.question_set,
            **self.percent,
            "questions": len(self.seconds),
            "candidates": self.candidates,
            "ms_per_question": self.ms_per_question,
        }


def evaluate(
    ranker: Ranker,
    question_set: QuestionSet,
    *,
    measures: str | Iterable[str] = DEFAULT_MEASURES,
    on_question: Callable[[Question], None] | None = None,
) -> Evaluation:
    """
    Rank the candidates of every question and compute the measures.

    Questions without an answer count 0 in every measure; filter them out first if they should not
    count. `on_question` is called after each question, for progress. A ranking that misses or
    repeats a candidate raises RankerError.
    """
    wanted = [measure.name for measure in parse_measures(measures)]
    if not question_set.questions:
        raise InputError(
            f"Expected at least one question, got none in {question_set.name!r}. "
            "Check the file or the filter."
        )
    seconds: list[float] = []

    def timed(question: Question) -> tuple[Question, Sequence[Hit]]:
        texts = question.texts
        start = perf_counter()
        hits = ranker.rank(question.text, texts)
        seconds.append(perf_counter() - start)
        if on_question is not None:
            on_question(question)
        return question, hits

    try:
        run = Run.from_hits(str(ranker), map(timed, question_set))
    except RankerError as error:
        raise RankerError(f"Ranker '{ranker}' broke its contract. {error}") from error
    return Evaluation(
        ranker=str(ranker),
        question_set=question_set.name,
        values=score_run(run, _positive_qrels(question_set), measures=wanted),
        seconds=np.asarray(seconds),
        candidates=question_set.candidate_count,
        run=run,
    )


def _positive_qrels(questions: Iterable[Question]) -> dict[str, dict[str, int]]:
    """Qrels without the zeros, which are most of them and which no measure needs."""
    return {
        question.id: {candidate.id: 1 for candidate in question.candidates if candidate.is_answer}
        for question in questions
    }


Cell: TypeAlias = str | int | float | None
"""A text, a count, a value, or None for an unknown value."""


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
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
        [_format_cell(cell) for cell in header],
        *([_format_cell(cell) for cell in row] for row in rows),
    ]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(header))]
    rule = [
        "-" * (width - right) + ":" * right for width, right in zip(widths, numeric, strict=True)
    ]
    lines.insert(1, rule)
    return "\n".join(_format_row(line, widths, numeric) for line in lines)


def _format_cell(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.2f}"
    return " ".join(str(cell).replace("|", "\\|").split())


def _format_row(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return f"| {' | '.join(padded)} |"
