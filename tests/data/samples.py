"""Helpers: write small files, collect the problems of bad ones, make question sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from askline.errors import DataError
from askline.types import Candidate, Question, QuestionSet


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return path


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def problems(read: Callable[[Path], object], path: Path) -> list[tuple[int, str]]:
    """The lines and messages of the DataError that reading must raise."""
    with pytest.raises(DataError) as caught:
        read(path)
    assert {problem.path for problem in caught.value.problems} == {str(path)}
    return [(problem.line, problem.message) for problem in caught.value.problems]


def labels(question: Question) -> list[bool]:
    return [candidate.is_answer for candidate in question.candidates]


def make_set(rows: Iterable[tuple[str, dict[str, int]]], name: str = "tiny") -> QuestionSet:
    """Questions from their text and a dict of candidate texts to labels."""
    questions = [
        Question(
            f"q{number}",
            text,
            tuple(
                Candidate(f"q{number}-{place}", sentence, label == 1)
                for place, (sentence, label) in enumerate(candidates.items())
            ),
        )
        for number, (text, candidates) in enumerate(rows)
    ]
    return QuestionSet(name, tuple(questions))
