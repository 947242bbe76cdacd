"""WikiQA: tab-separated rows with a header, one row per sentence, in document order."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

from ..types import Candidate, Question, QuestionSet
from .data_files import DataFile, RowError, UniqueIds, check_text

__all__ = ["read_wikiqa"]

_COLUMNS = ("QuestionID", "Question", "SentenceID", "Sentence", "Label")


def read_wikiqa(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Read the official TSV. Quotation marks are text.

    Columns are found by name, so their order and additional columns do not matter. The rows of a
    question need not be adjacent; questions are in the order of their first rows.
    """
    file = DataFile(path)
    drafts: dict[str, tuple[str, list[Candidate]]] = {}
    unique = UniqueIds("sentence")
    for line, (question_id, question, sentence_id, sentence, label) in _rows(file):
        try:
            if label not in ("0", "1"):
                raise RowError(f"Label must be 0 or 1, got {label!r:.40}.")
            candidate = Candidate(sentence_id, check_text(sentence, "Sentence"), label == "1")
            text, candidates = drafts.setdefault(
                check_text(question_id, "QuestionID"), (check_text(question, "Question"), [])
            )
            if text != question:
                raise RowError(
                    f"{question_id} has a different question text in an earlier row. Correct it."
                )
            unique.add(f"{question_id} {check_text(sentence_id, 'SentenceID')}", f"line {line}")
            candidates.append(candidate)
        except RowError as error:
            file.add_problem(line, str(error))
    questions = [Question(key, text, tuple(rows)) for key, (text, rows) in drafts.items()]
    return file.question_set(name, questions)


def _rows(file: DataFile) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line number and the five columns of every row with as many fields as the header."""
    lines = file.lines()
    line, header = next(lines, (0, ""))
    if line != 1:  # an empty file, or a first line that could not be decoded
        return
    columns = header.split("\t")
    missing = [column for column in _COLUMNS if column not in columns]
    if missing:
        file.add_problem(1, f"No column {', '.join(missing)}. Expected {', '.join(_COLUMNS)}.")
        return
    indexes = [columns.index(column) for column in _COLUMNS]
    for line, text in lines:
        fields = text.split("\t")
        if len(fields) == len(columns):
            yield line, tuple(fields[index] for index in indexes)
        elif text:
            file.add_problem(
                line,
                f"Expected {len(columns)} tab-separated columns, got {len(fields)}. "
                "Correct or remove the row.",
            )
