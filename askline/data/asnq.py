"""ASNQ: rows of question, sentence and label without a header, where label 4 is the answer."""

from __future__ import annotations

from os import PathLike

from ..types import Candidate, Question, QuestionSet
from .files import DataFile

__all__ = ["read_asnq"]

_ANSWER = "4"  # in the long answer, with the short answer; 1 to 3 lack one or both of these
_LABELS = frozenset("1234")


def read_asnq(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Rows are grouped by the question's text, which is all that names a question here.

    Questions get the ids Q1, Q2, … by first appearance. No quoting is undone. The whole train file
    (20 million rows) becomes some eight gigabytes of candidates.
    """
    file = DataFile(path)
    drafts: dict[str, list[tuple[str, bool]]] = {}
    for line, text in file.lines():
        fields = text.split("\t")
        if len(fields) != 3:
            if text:
                file.problem(line, _columns(len(fields)))
            continue
        question, sentence, label = fields
        if label not in _LABELS:
            file.problem(line, f"Label must be 1, 2, 3 or 4, got {label!r:.40}.")
        elif not question.strip() or not sentence.strip():
            file.problem(line, "The question or the sentence is empty. Remove the row.")
        else:
            drafts.setdefault(question, []).append((sentence, label == _ANSWER))
    questions = [
        _question(f"Q{number}", text, rows) for number, (text, rows) in enumerate(drafts.items(), 1)
    ]
    return file.question_set(name, questions)


def _question(name: str, text: str, rows: list[tuple[str, bool]]) -> Question:
    candidates = (
        Candidate(f"{name}-{place}", sentence, is_answer)
        for place, (sentence, is_answer) in enumerate(rows)
    )
    return Question(name, text, tuple(candidates))


def _columns(found: int) -> str:
    return (
        f"Expected question, sentence and label, separated by tabs, got {found} columns. "
        "Add the missing ones, or remove the row."
    )
