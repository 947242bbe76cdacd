"""
TrecQA: the XML of the raw TRAIN, DEV and TEST splits, and the JSON lines of TRAIN-ALL.

In these files the positives of a question come before its negatives, so the order reveals the
labels. Therefore both readers shuffle the candidates of each question, with a generator seeded by
`seed` and the id of the question: the order is the same in every run, whatever else is read. The id
of a candidate is its position in the file. "Clean" sets have only questions with positives and
negatives: `filter_questions(question_set, "both")`.

The questions of DEV and TEST come in series (57.1 to 57.4 are about one space capsule); the series
is their topic. TRAIN has no series.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from random import Random

from ..types import Candidate, Question, QuestionSet
from .data_files import (
    DataFile,
    JsonObject,
    RowError,
    UniqueIds,
    check_labels,
    check_object,
    get_field,
    get_list,
    get_text,
)

__all__ = ["read_trecqa", "read_trecqa_all"]

_OPENING = re.compile(r"<QApairs id=(['\"])(.+)\1>")
_SERIES = re.compile(r"(\d+)\.\d+")
_BLOCKS = {"<question>": "question", "<positive>": "positive", "<negative>": "negative"}
_ANSWER_LINE = 5  # of a positive block: words, tags, relations, heads, entities, answer, positions


@dataclass(slots=True)
class _Draft:
    """A question while its blocks are read."""

    line: int
    id: str
    text: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    answers: dict[str, None] = field(default_factory=dict)


def read_trecqa(
    path: str | PathLike[str], *, name: str | None = None, seed: int = 0
) -> QuestionSet:
    """
    Read the raw XML line by line, because it is not well-formed: bare ampersands and no root.

    Words are joined by single spaces. `answers` are the phrases marked in the positive sentences.
    A question may have no candidates: the published DEV has one, which is counted in its 82.
    """
    file = DataFile(path)
    unique = UniqueIds("question")
    drafts: list[_Draft] = []
    for line, tag, content in _blocks(file):
        try:
            if tag == "QApairs":
                drafts.append(_Draft(line, content[0]))
                unique.add(content[0], f"line {line}")
            elif not drafts:
                raise RowError("The block is before the first <QApairs id='…'>. Move it.")
            else:
                _add_block(drafts[-1], tag, content)
        except RowError as error:
            file.add_problem(line, str(error))
    questions = file.parse_rows(((draft.line, draft) for draft in drafts), _finish)
    return file.question_set(name, [_shuffled(question, seed) for question in questions])


def read_trecqa_all(
    path: str | PathLike[str], *, name: str | None = None, seed: int = 0
) -> QuestionSet:
    """
    Read TRAIN-ALL, which has automatic labels. Ids are `Q` and the line number.

    Lines are `{"question": …, "candidates": [{"sentence": …, "label": 0}, …]}`.
    """
    file = DataFile(path)
    questions = file.parse_rows(file.records(), _question)
    return file.question_set(name, [_shuffled(question, seed) for question in questions])


def _blocks(file: DataFile) -> Iterator[tuple[int, str, list[str]]]:
    """The line and name of each opening tag, and the lines inside it; for QApairs, its id."""
    opened, start, content = "", 0, [""]
    for line, row in file.lines():
        if opened and row == f"</{opened}>":
            yield start, opened, content
            opened = ""
        elif row in _BLOCKS or row.startswith(("<QApairs", "</QApairs>")):
            if opened:
                file.add_problem(
                    start, f"<{opened}> is not closed. Add </{opened}> after its lines."
                )
            opened, start, content = _BLOCKS.get(row, ""), line, []
            if row.startswith("<QApairs"):
                if match := _OPENING.fullmatch(row):
                    yield line, "QApairs", [match[2]]
                else:
                    file.add_problem(line, f"Expected <QApairs id='…'>, got {row!r:.60}.")
        elif opened:
            content.append(row)
        elif row.strip():
            file.add_problem(line, f"Text outside a block: {row!r:.60}. Remove it.")
    if opened:
        file.add_problem(start, f"<{opened}> is not closed before the file ends. Get it again.")


def _add_block(draft: _Draft, tag: str, content: list[str]) -> None:
    sentence = _single_spaced(content[0]) if content else ""
    if not sentence:
        raise RowError(f"<{tag}> has no words in its first line. Fill them in, or remove it.")
    if tag == "question":
        if draft.text:
            raise RowError(f"{draft.id} has a second <question>. Remove one.")
        draft.text = sentence
        return
    candidate_id = f"{draft.id}-{len(draft.candidates)}"
    draft.candidates.append(Candidate(candidate_id, sentence, tag == "positive"))
    if tag == "positive" and len(content) > _ANSWER_LINE and _single_spaced(content[_ANSWER_LINE]):
        draft.answers[_single_spaced(content[_ANSWER_LINE])] = None


def _single_spaced(row: str) -> str:
    return " ".join(row.split())


def _finish(_: int, draft: _Draft) -> Question:
    if not draft.text:
        raise RowError(f"{draft.id} has no <question>. Add it.")
    series = _SERIES.fullmatch(draft.id)
    return Question(
        draft.id,
        draft.text,
        tuple(draft.candidates),
        tuple(draft.answers),
        topic=series[1] if series else "",
    )


def _question(line: int, record: JsonObject) -> Question:
    rows = [check_object(row, "A candidate") for row in get_list(record, "candidates")]
    if not rows:
        raise RowError("'candidates' is an empty list. Add an entry, or remove the row.")
    is_answer = check_labels((get_field(row, "label") for row in rows), len(rows), "'label'")
    candidates = (
        Candidate(f"Q{line}-{index}", get_text(row, "sentence"), label)
        for index, (row, label) in enumerate(zip(rows, is_answer, strict=True))
    )
    return Question(f"Q{line}", get_text(record, "question"), tuple(candidates))


def _shuffled(question: Question, seed: int) -> Question:
    candidates = list(question.candidates)
    Random(f"{seed}:{question.id}").shuffle(candidates)
    return replace(question, candidates=tuple(candidates))
