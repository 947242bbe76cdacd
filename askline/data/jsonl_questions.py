"""
askline's own format: one question a line, as a JSON object.

    {"question": "…", "candidates": ["…", "…"], "labels": [0, 1],
     "id": "…", "candidate_ids": ["…", "…"], "answers": ["…"], "topic": "…",
     "sources": [["doc", 0, 40], null]}

The first three are needed. `answers` are gold phrases, `topic` is what the question shares with
others of the set, and `sources` are places of the candidates as document, start and end. Other keys
are ignored.

Pairs of a question and the sentence that answers it, one JSON object a line.
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
    The set that `write_jsonl` wrote, equal to the last field, or one from elsewhere.

    A question without an id is called Q and its line; candidates without ids are called by that
    id and their place, from 0.
    """
    file = DataFile(path)
    unique = UniqueIds("question")

    def parse(line: int, record: JsonObject) -> Question:
        question = _question(line, record)
        unique.take(question.id, f"line {line}")
        return question

    return file.question_set(name, file.collect(file.records(), parse))


def write_jsonl(question_set: QuestionSet, path: str | PathLike[str]) -> None:
    """
    Write a set so that `read_jsonl` gives it back; a name that ends in .gz is packed.

    The file appears whole or not at all. What could not be read back (an empty text, an id used
    twice) is refused before anything is written.
    """
    path = Path(path).expanduser()
    unique = UniqueIds("question")
    lines = []
    for place, question in enumerate(question_set, 1):
        record = _record(question)
        try:
            unique.take(_question(place, record).id, f"question {place}")
        except RowError as error:
            raise InputError(f"Question {question.id!r} cannot be written: {error}") from error
        lines.append(json.dumps(record, ensure_ascii=False))
    if not lines:
        raise InputError("A set without questions cannot be written, for none can be read.")
    content = ("\n".join(lines) + "\n").encode()
    with atomic_write(path) as stream:
        stream.write(_pack(content) if path.suffix == ".gz" else content)


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
        return [f"{question_id}-{place}" for place in range(count)]
    ids = get_texts(record, "candidate_ids")
    _same_length("candidate_ids", ids, count)
    unique = UniqueIds("candidate")
    for place, candidate_id in enumerate(ids):
        unique.take(candidate_id, f"'candidate_ids'[{place}]")
    return ids


def _sources(record: JsonObject, count: int) -> list[Source | None]:
    if "sources" not in record:
        return [None] * count
    values = get_list(record, "sources")
    _same_length("sources", values, count)
    return [_source(value, f"'sources'[{place}]") for place, value in enumerate(values)]


def _source(value: object, what: str) -> Source | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 3:
        raise RowError(f"{what} must be null or [document, start, end], got {value!r:.40}.")
    document, start, end = value
    if not (type(start) is type(end) is int and 0 <= start <= end):
        raise RowError(f"{what} must have a start and an end from 0 on, got {value!r:.40}.")
    return Source(check_text(document, what), start, end)


def _same_length(key: str, values: Sequence[object], count: int) -> None:
    if len(values) != count:
        raise RowError(f"{key!r} has {len(values)} entries for {count} candidates. Give one each.")


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
        record["sources"] = [[at.document, at.start, at.end] if at else None for at in sources]
    return record


def _pack(content: bytes) -> bytes:
    """Without a name and a time inside, so that the same set gives the same bytes."""
    packed = BytesIO()
    with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as stream:
        stream.write(content)
    return packed.getvalue()


def read_pairs(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Lines of `{"question": …, "sentence": …}`: one candidate each, which is the answer.

    There is nothing to rank in such a set: it is training material whose negatives come from
    elsewhere (`pad` brings some). Ids are Q and the line.
    """
    file = DataFile(path)
    return file.question_set(name, file.collect(file.records(), _question_pairs))


def _question_pairs(line: int, record: JsonObject) -> Question:
    candidate = Candidate(f"Q{line}-0", get_text(record, "sentence"), is_answer=True)
    return Question(f"Q{line}", get_text(record, "question"), (candidate,))
