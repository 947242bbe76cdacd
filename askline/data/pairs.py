"""Pairs of a question and the sentence that answers it, one JSON object a line."""

from __future__ import annotations

from os import PathLike

from ..types import Candidate, Question, QuestionSet
from .files import DataFile
from .records import Record, text

__all__ = ["read_pairs"]


def read_pairs(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Lines of `{"question": …, "sentence": …}`: one candidate each, which is the answer.

    There is nothing to rank in such a set: it is training material whose negatives come from
    elsewhere (`pad` brings some). Ids are Q and the line.
    """
    file = DataFile(path)
    return file.question_set(name, file.collect(file.records(), _question))


def _question(line: int, record: Record) -> Question:
    candidate = Candidate(f"Q{line}-0", text(record, "sentence"), is_answer=True)
    return Question(f"Q{line}", text(record, "question"), (candidate,))
