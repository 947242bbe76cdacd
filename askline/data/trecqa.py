"""
TrecQA: the XML of the raw TRAIN, DEV and TEST, and the JSON lines of TRAIN-ALL.

In all of these files a question's positives stand before its negatives, so their order gives the
labels away. Both readers therefore shuffle each question's candidates, by a generator seeded with
`seed` and the question's id: the same order in every run, whatever else is read. A candidate's id
keeps its place in the file. "Clean" is the part of a set with labels of both kinds:
`select(question_set, "both")`.

The questions of DEV and TEST come in series: 57.1 to 57.4 ask about one space capsule, which is
their topic here. TRAIN has none.
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
    get_list,
    get_text,
)
from .data_files import get_field as value_of

__all__ = ["read_trecqa", "read_trecqa_all"]

_OPENING = re.compile(r"<QApairs id=(['\"])(.+)\1>")
_SERIES = re.compile(r"(\d+)\.\d+")
_BLOCKS = {"<question>": "question", "<positive>": "positive", "<negative>": "negative"}
_ANSWER_LINE = 5  # in a positive block: words, tags, relations, heads, entities, answer, places


@dataclass(slots=True)
class _Draft:
    """A question while its blocks come in."""

    line: int
    id: str
    text: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    answers: dict[str, None] = field(default_factory=dict)


def read_trecqa(
    path: str | PathLike[str], *, name: str | None = None, seed: int = 0
) -> QuestionSet:
    """
    The raw XML, which is lines rather than XML: its ampersands are bare and it has no root.

    A text is its words with single spaces between them. `answers` are the phrases marked in the
    positive sentences. A question may be without candidates: the published DEV has one, and it
    counts among its 82.
    """
    file = DataFile(path)
    unique = UniqueIds("question")
    drafts: list[_Draft] = []
    for line, tag, content in _blocks(file):
        try:
            if tag == "QApairs":
                drafts.append(_Draft(line, content[0]))
                unique.take(content[0], f"line {line}")
            elif not drafts:
                raise RowError("The block stands before the first <QApairs id='…'>. Move it.")
            else:
                _add(drafts[-1], tag, content)
        except RowError as error:
            file.problem(line, str(error))
    questions = file.collect(((draft.line, draft) for draft in drafts), _finished)
    return file.question_set(name, [_shuffled(question, seed) for question in questions])


def read_trecqa_all(
    path: str | PathLike[str], *, name: str | None = None, seed: int = 0
) -> QuestionSet:
    """
    TRAIN-ALL, with automatic labels; ids are Q and the line.

    Lines are `{"question": …, "candidates": [{"sentence": …, "label": 0}, …]}`.
    """
    file = DataFile(path)
    questions = file.collect(file.records(), _question)
    return file.question_set(name, [_shuffled(question, seed) for question in questions])


def _blocks(file: DataFile) -> Iterator[tuple[int, str, list[str]]]:
    """The line of each opening tag, the tag's name, and the lines inside; for QApairs, its id."""
    opened, start, content = "", 0, [""]
    for line, row in file.lines():
        if opened and row == f"</{opened}>":
            yield start, opened, content
            opened = ""
        elif row in _BLOCKS or row.startswith(("<QApairs", "</QApairs>")):
            if opened:
                file.problem(start, f"<{opened}> is not closed. Add </{opened}> behind its lines.")
            opened, start, content = _BLOCKS.get(row, ""), line, []
            if row.startswith("<QApairs"):
                if match := _OPENING.fullmatch(row):
                    yield line, "QApairs", [match[2]]
                else:
                    file.problem(line, f"Expected <QApairs id='…'>, got {row!r:.60}.")
        elif opened:
            content.append(row)
        elif row.strip():
            file.problem(line, f"Text outside of a block: {row!r:.60}. Remove it.")
    if opened:
        file.problem(start, f"<{opened}> is not closed: the file ends. Fetch it again.")


def _add(draft: _Draft, tag: str, content: list[str]) -> None:
    sentence = _words(content[0]) if content else ""
    if not sentence:
        raise RowError(f"<{tag}> has no words in its first line. Fill them in, or remove it.")
    if tag == "question":
        if draft.text:
            raise RowError(f"{draft.id} has a second <question>. Remove one.")
        draft.text = sentence
        return
    candidate_id = f"{draft.id}-{len(draft.candidates)}"
    draft.candidates.append(Candidate(candidate_id, sentence, tag == "positive"))
    if tag == "positive" and len(content) > _ANSWER_LINE and _words(content[_ANSWER_LINE]):
        draft.answers[_words(content[_ANSWER_LINE])] = None


def _words(row: str) -> str:
    return " ".join(row.split())


def _finished(_: int, draft: _Draft) -> Question:
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
        raise RowError("'candidates' has no entries. Give at least one, or remove the row.")
    is_answer = check_labels((value_of(row, "label") for row in rows), len(rows), "'label'")
    candidates = (
        Candidate(f"Q{line}-{place}", get_text(row, "sentence"), answers)
        for place, (row, answers) in enumerate(zip(rows, is_answer, strict=True))
    )
    return Question(f"Q{line}", get_text(record, "question"), tuple(candidates))


def _shuffled(question: Question, seed: int) -> Question:
    candidates = list(question.candidates)
    Random(f"{seed}:{question.id}").shuffle(candidates)
    return replace(question, candidates=tuple(candidates))
