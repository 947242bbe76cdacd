"""WikiQA: tab-separated rows under a header, one row a sentence, sentences in document order."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

from ..types import Candidate, Question, QuestionSet
from .data_files import DataFile, RowError, UniqueIds, check_text

__all__ = ["read_wikiqa"]

_COLUMNS = ("QuestionID", "Question", "SentenceID", "Sentence", "Label")


def read_wikiqa(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    The official TSV. Quotation marks are text: no quoting is undone.

    Columns are found by their header, so their order and further columns do not matter. Rows of
    one question may stand apart; the questions come in the order of their first rows.
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
                raise RowError(f"{question_id} has another question text in an earlier row.")
            unique.take(f"{question_id} {check_text(sentence_id, 'SentenceID')}", f"line {line}")
            candidates.append(candidate)
        except RowError as error:
            file.problem(line, str(error))
    questions = [Question(key, text, tuple(rows)) for key, (text, rows) in drafts.items()]
    return file.question_set(name, questions)


def _rows(file: DataFile) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The five columns that count, of every row that has as many fields as the header."""
    lines = file.lines()
    line, header = next(lines, (0, ""))
    if line != 1:  # an empty file, or a first line that was noted as broken
        return
    columns = header.split("\t")
    missing = [column for column in _COLUMNS if column not in columns]
    if missing:
        file.problem(1, f"No column {', '.join(missing)}. Expected {', '.join(_COLUMNS)}.")
        return
    places = [columns.index(column) for column in _COLUMNS]
    for line, text in lines:
        fields = text.split("\t")
        if len(fields) == len(columns):
            yield line, tuple(fields[place] for place in places)
        elif text:
            file.problem(
                line,
                f"Expected {len(columns)} tab-separated columns, got {len(fields)}. "
                "Add the missing ones, or remove the row.",
            )
