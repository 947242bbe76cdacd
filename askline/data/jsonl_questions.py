"""
askline's own format, one JSON object per question and line, and a format for positive pairs.

    {"question": "…", "candidates": ["…", "…"], "labels": [0, 1],
     "id": "…", "candidate_ids": ["…", "…"], "answers": ["…"], "topic": "…",
     "sources": [["doc", 0, 40], null]}

The first three fields are required. `answers` are gold phrases, `topic` groups related questions,
and `sources` gives the document, start and end of each candidate. Other fields are ignored.

A positive pair is a question and the sentence that answers it: `{"question": …, "sentence": …}`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path

from ..errors import InputError
from ..text.atomic_write import atomic_write
from ..types import Candidate, Question, QuestionSet, Source
from .data_files import (
    DataFile,
    JsonObject,
    RowError,
    UniqueIds,
    check_labels,
    check_text,
    get_list,
    get_text,
    get_texts,
)

__all__ = [
    "read_jsonl",
    "read_pairs",
    "write_jsonl",
]


def read_jsonl(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Read a file in askline's own format.

    The default id of a question is `Q` and its line number; that of a candidate is the id of its
    question, `-` and its index from 0.
    """
    file = DataFile(path)
    unique = UniqueIds("question")

    def parse(line: int, record: JsonObject) -> Question:
        question = _question(line, record)
        unique.add(question.id, f"line {line}")
        return question

    return file.question_set(name, file.parse_rows(file.records(), parse))


def write_jsonl(question_set: QuestionSet, path: str | PathLike[str]) -> None:
    """
    Write a set so that `read_jsonl` returns an equal set; a name that ends in .gz is compressed.

    The file is written atomically. A set that could not be read back (an empty text, a repeated
    id) is refused before anything is written.
    """
    path = Path(path).expanduser()
    unique = UniqueIds("question")
    lines = []
    for number, question in enumerate(question_set, 1):
        record = _record(question)
        try:
            unique.add(_question(number, record).id, f"question {number}")
        except RowError as error:
            raise InputError(f"Question {question.id!r} cannot be written: {error}") from error
        lines.append(json.dumps(record, ensure_ascii=False))
    if not lines:
        raise InputError("Expected at least one question to write, got none. Check the filter.")
    content = ("\n".join(lines) + "\n").encode()
    with atomic_write(path) as stream:
        stream.write(_gzip(content) if path.suffix == ".gz" else content)


def read_pairs(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Read positive pairs: each question has one candidate, which is the answer.

    Such a set is for training; its negatives must be added, for example by `pad`. The id of a
    question is `Q` and its line number.
    """
    file = DataFile(path)
    return file.question_set(name, file.parse_rows(file.records(), _pair_question))


def _question(line: int, record: JsonObject) -> Question:
    question_id = get_text(record, "id") if "id" in record else f"Q{line}"
    sentences = get_texts(record, "candidates")
    is_answer = check_labels(get_list(record, "labels"), len(sentences))
    ids = _candidate_ids(record, question_id, len(sentences))
    sources = _sources(record, len(sentences))
    return Question(
        question_id,
        get_text(record, "question"),
        tuple(map(Candidate, ids, sentences, is_answer, sources)),
        tuple(get_texts(record, "answers")) if record.get("answers") else (),
        get_text(record, "topic") if record.get("topic") else "",
    )


def _candidate_ids(record: JsonObject, question_id: str, count: int) -> list[str]:
    if "candidate_ids" not in record:
        return [f"{question_id}-{index}" for index in range(count)]
    ids = get_texts(record, "candidate_ids")
    _check_length("candidate_ids", ids, count)
    unique = UniqueIds("candidate")
    for index, candidate_id in enumerate(ids):
        unique.add(candidate_id, f"'candidate_ids'[{index}]")
    return ids


def _sources(record: JsonObject, count: int) -> list[Source | None]:
    if "sources" not in record:
        return [None] * count
    values = get_list(record, "sources")
    _check_length("sources", values, count)
    return [_source(value, f"'sources'[{index}]") for index, value in enumerate(values)]


def _source(value: object, what: str) -> Source | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 3:
        raise RowError(f"{what} must be null or [document, start, end], got {value!r:.40}.")
    document, start, end = value
    if not (type(start) is type(end) is int and 0 <= start <= end):
        raise RowError(f"{what} must have integers 0 <= start <= end, got {value!r:.40}.")
    return Source(check_text(document, what), start, end)


def _check_length(key: str, values: Sequence[object], count: int) -> None:
    if len(values) != count:
        raise RowError(f"{key!r} must have one entry per candidate ({count}), got {len(values)}.")


def _record(question: Question) -> JsonObject:
    record: JsonObject = {
        "id": question.id,
        "question": question.text,
        "candidates": question.texts,
        "labels": [int(candidate.is_answer) for candidate in question.candidates],
        "candidate_ids": [candidate.id for candidate in question.candidates],
    }
    if question.answers:
        record["answers"] = list(question.answers)
    if question.topic:
        record["topic"] = question.topic
    sources = [candidate.source for candidate in question.candidates]
    if any(sources):
        record["sources"] = [
            [source.document, source.start, source.end] if source else None for source in sources
        ]
    return record


def _gzip(content: bytes) -> bytes:
    """Without file name and time, so that equal sets give equal bytes."""
    packed = BytesIO()
    with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as stream:
        stream.write(content)
    return packed.getvalue()


def _pair_question(line: int, record: JsonObject) -> Question:
    candidate = Candidate(f"Q{line}-0", get_text(record, "sentence"), is_answer=True)
    return Question(f"Q{line}", get_text(record, "question"), (candidate,))
