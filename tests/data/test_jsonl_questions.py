from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askline.data import read_jsonl, read_pairs, write_jsonl
from askline.errors import InputError
from askline.types import Candidate, Question, QuestionSet, Source

from .samples import labels, make_set, problems, write

FULL = QuestionSet(
    "full",
    (
        Question(
            "first",
            "Où est l'été ? 🌞",
            (
                Candidate("a", "In\nJune.", True, Source("page", 3, 11)),
                Candidate("b", 'A "quoted"\tword.', False, None),
            ),
            ("June",),
            "seasons",
        ),
        Question("second", "Who?", (Candidate("a", "Nobody."),)),
    ),
)


def row(**changes: object) -> str:
    record: dict[str, object] = {
        "question": "Who?",
        "candidates": ["No.", "Ann."],
        "labels": [0, 1],
    }
    record.update(changes)
    return json.dumps({key: value for key, value in record.items() if value is not ...})


def test_missing_ids_get_defaults(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.jsonl", row(), "", row(id="x", labels=[True, False]))
    found = read_jsonl(path)
    assert found.name == "tiny.jsonl"
    assert [question.id for question in found] == ["Q1", "x"]
    assert [candidate.id for candidate in found.questions[1].candidates] == ["x-0", "x-1"]
    assert [labels(question) for question in found] == [[False, True], [True, False]]
    assert read_jsonl(path, name="mine").name == "mine"


@pytest.mark.parametrize("name", ["full.jsonl", "full.jsonl.gz"])
def test_written_set_is_read_back_equal(tmp_path: Path, name: str) -> None:
    write_jsonl(FULL, tmp_path / name)
    assert read_jsonl(tmp_path / name, name="full") == FULL
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@pytest.mark.slow
@settings(deadline=None)
@given(
    rows=st.dictionaries(
        texts, st.dictionaries(texts, st.integers(0, 1), min_size=1, max_size=4), min_size=1
    )
)
def test_any_text_round_trips(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.jsonl"
    question_set = make_set(rows.items(), name="any.jsonl")
    write_jsonl(question_set, path)
    assert read_jsonl(path) == question_set


def test_gzip_files_of_equal_sets_are_equal(tmp_path: Path) -> None:
    write_jsonl(FULL, tmp_path / "one.gz")
    write_jsonl(FULL, tmp_path / "two.gz")
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    assert len(gzip.decompress((tmp_path / "one.gz").read_bytes()).splitlines()) == 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            row(question=...),
            "No 'question', only 'candidates', 'labels'. Add it to the row.",
        ),
        (row(question=7), "'question' must be a string, got a number."),
        (row(question=" "), "'question' is empty. Fill it in, or remove it."),
        (row(candidates="No."), "'candidates' must be a list, got a string."),
        (
            row(candidates=[], labels=[]),
            "'candidates' is an empty list. Add an entry, or remove the row.",
        ),
        (row(candidates=["No.", ""]), "'candidates'[1] is empty. Fill it in, or remove it."),
        (row(candidates=["No.", None]), "'candidates'[1] must be a string, got null."),
        (
            row(candidates=["No.", "\ud83d"]),
            "'candidates'[1] has half of a surrogate pair at position 0. Write the file again.",
        ),
        (row(labels={}), "'labels' must be a list, got an object."),
        (
            row(labels=[1]),
            "'labels' must have one label per candidate (2), got 1.",
        ),
        (row(labels=[0, 2]), "'labels'[1] must be 0 or 1, got 2."),
        (row(labels=[0, "1"]), "'labels'[1] must be 0 or 1, got '1'."),
        (row(labels=[0, 1.0]), "'labels'[1] must be 0 or 1, got 1.0."),
        (row(id=5), "'id' must be a string, got a number."),
        (
            row(id="taken"),
            "The question id 'taken' is already used by line 1. Give each its own id.",
        ),
        (
            row(candidate_ids=["a"]),
            "'candidate_ids' must have one entry per candidate (2), got 1.",
        ),
        (
            row(candidate_ids=["a", "a"]),
            "The candidate id 'a' is already used by 'candidate_ids'[0]. Give each its own id.",
        ),
        (row(sources=[None]), "'sources' must have one entry per candidate (2), got 1."),
        (
            row(sources=[None, ["d", 1]]),
            "'sources'[1] must be null or [document, start, end], got ['d', 1].",
        ),
        (
            row(sources=[None, ["d", 4, 1]]),
            "'sources'[1] must have integers 0 <= start <= end, got ['d', 4, 1].",
        ),
        (row(answers="Ann"), "'answers' must be a list, got a string."),
        (row(topic=57), "'topic' must be a string, got a number."),
    ],
)
def test_bad_row_is_reported_with_its_line(tmp_path: Path, bad: str, message: str) -> None:
    path = write(tmp_path / "q.jsonl", row(id="taken"), row(), bad)
    assert problems(read_jsonl, path) == [(3, message)]


def test_all_bad_rows_are_reported_together(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", row(labels=[1]), row(), "{", row(question=""))
    assert [line for line, _ in problems(read_jsonl, path)] == [1, 3, 4]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("Who?", {" ": 0})], r"Question 'q0' cannot be written: 'candidates'\[0\] is empty"),
        ([("Who?", {})], r"'candidates' is an empty list"),
        ([("Who? \ud83d", {"No.": 0})], r"'question' has half of a surrogate pair"),
        ([], r"at least one question to write, got none"),
    ],
    ids=["blank", "none", "surrogate", "no-questions"],
)
def test_unreadable_set_is_not_written(
    tmp_path: Path, rows: list[tuple[str, dict[str, int]]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        write_jsonl(make_set(rows), tmp_path / "q.jsonl")
    assert not list(tmp_path.iterdir())


def test_repeated_question_id_is_not_written(tmp_path: Path) -> None:
    doubled = QuestionSet("x", FULL.questions[:1] * 2)
    with pytest.raises(InputError, match="question id 'first' is already used by question 1"):
        write_jsonl(doubled, tmp_path / "q.jsonl")


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", "old")
    with pytest.raises(InputError):
        write_jsonl(make_set([("Who?", {"": 1})]), path)
    assert path.read_text() == "old\n"
    with pytest.raises(InputError, match=r"cannot be written: No such file or directory\."):
        write_jsonl(FULL, tmp_path / "nowhere" / "q.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_jsonl(FULL, tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "q.jsonl"]


def test_pair_is_a_question_with_one_answer(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", '{"question": "Who?", "sentence": "Ann did."}')
    [question] = read_pairs(path)
    assert (question.id, question.text, question.texts) == ("Q1", "Who?", ["Ann did."])
    assert labels(question) == [True]


def test_all_bad_pairs_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", '{"question": "Who?"}', '{"question": "", "sentence": "x"}')
    assert problems(read_pairs, path) == [
        (1, "No 'sentence', only 'question'. Add it to the row."),
        (2, "'question' is empty. Fill it in, or remove it."),
    ]
