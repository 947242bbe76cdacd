"""SelQA: a JSON list of questions with candidates and the indexes of the answers."""

from __future__ import annotations

from functools import partial
from os import PathLike

from ..types import Candidate, Question, QuestionSet
from .data_files import DataFile, JsonObject, RowError, get_list, get_text, get_texts, json_type

__all__ = ["read_selqa"]


def read_selqa(
    path: str | PathLike[str], *, name: str | None = None, keep_empty: bool = True
) -> QuestionSet:
    """
    Candidates keep the order of their section; ids are `Q` and the position from 1.

    The published files have empty candidates (42 of 9,419 in dev), all of them negatives. They are
    counted in the published figures, so they are kept unless `keep_empty` is false. An empty
    candidate that is labelled as an answer is a problem.
    """
    file = DataFile(path)
    document = file.document()
    if not isinstance(document, list):
        file.fail(0, f"Expected a JSON list of questions, got {json_type(document)}.")
    questions = file.parse_items(document, "", partial(_question, keep_empty=keep_empty))
    return file.question_set(name, questions)


def _question(record: JsonObject, _: str, position: int, *, keep_empty: bool) -> Question:
    question_id = f"Q{position + 1}"
    sentences = get_texts(record, "candidates", blank=True)
    answers = _answers(record, sentences)
    candidates = tuple(
        Candidate(f"{question_id}-{index}", sentence, index in answers)
        for index, sentence in enumerate(sentences)
        if keep_empty or sentence.strip()
    )
    return Question(question_id, get_text(record, "question"), candidates)


def _answers(record: JsonObject, sentences: list[str]) -> set[int]:
    answers: set[int] = set()
    for value in get_list(record, "answers"):
        if not isinstance(value, int) or not 0 <= value < len(sentences):
            raise RowError(
                f"'answers' must be indexes from 0 to {len(sentences) - 1}, got {value!r:.40}."
            )
        if not sentences[value].strip():
            raise RowError(f"'candidates'[{value}] is an answer but empty. Fill it in.")
        answers.add(value)
    return answers
