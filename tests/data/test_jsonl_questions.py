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


def test_reading_names_what_has_no_id(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.jsonl", row(), "", row(id="x", labels=[True, False]))
    found = read_jsonl(path)
    assert found.name == "tiny.jsonl"
    assert [question.id for question in found] == ["Q1", "x"]
    assert [candidate.id for candidate in found.questions[1].candidates] == ["x-0", "x-1"]
    assert [labels(question) for question in found] == [[False, True], [True, False]]
    assert read_jsonl(path, name="mine").name == "mine"


@pytest.mark.parametrize("name", ["full.jsonl", "full.jsonl.gz"])
def test_what_is_written_is_read_back_equal(tmp_path: Path, name: str) -> None:
    write_jsonl(FULL, tmp_path / name)
    assert read_jsonl(tmp_path / name, name="full") == FULL
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@settings(deadline=None)
@given(
    rows=st.dictionaries(
        texts, st.dictionaries(texts, st.integers(0, 1), min_size=1, max_size=4), min_size=1
    )
)
def test_any_texts_survive_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.jsonl"
    question_set = make_set(rows.items(), name="any.jsonl")
    write_jsonl(question_set, path)
    assert read_jsonl(path) == question_set


def test_packed_files_of_equal_sets_are_equal(tmp_path: Path) -> None:
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
        (row(question=7), "'question' must be a text, got a number."),
        (row(question=" "), "'question' is empty. Fill it in, or remove it."),
        (row(candidates="No."), "'candidates' must be a list, got a text."),
        (
            row(candidates=[], labels=[]),
            "'candidates' has no entries. Give at least one, or remove the row.",
        ),
        (row(candidates=["No.", ""]), "'candidates'[1] is empty. Fill it in, or remove it."),
        (row(candidates=["No.", None]), "'candidates'[1] must be a text, got null."),
        (
            row(candidates=["No.", "\ud83d"]),
            "'candidates'[1] holds half a character at position 0. Write the file anew.",
        ),
        (row(labels={}), "'labels' must be a list, got an object."),
        (
            row(labels=[1]),
            "'labels' has 1 entries for 2 candidates. Give one label for each.",
        ),
        (row(labels=[0, 2]), "'labels'[1] must be 0 or 1, got 2."),
        (row(labels=[0, "1"]), "'labels'[1] must be 0 or 1, got '1'."),
        (row(labels=[0, 1.0]), "'labels'[1] must be 0 or 1, got 1.0."),
        (row(id=5), "'id' must be a text, got a number."),
        (row(id="taken"), "The question id 'taken' is taken by line 1. Give each its own id."),
        (
            row(candidate_ids=["a"]),
            "'candidate_ids' has 1 entries for 2 candidates. Give one each.",
        ),
        (
            row(candidate_ids=["a", "a"]),
            "The candidate id 'a' is taken by 'candidate_ids'[0]. Give each its own id.",
        ),
        (row(sources=[None]), "'sources' has 1 entries for 2 candidates. Give one each."),
        (
            row(sources=[None, ["d", 1]]),
            "'sources'[1] must be null or [document, start, end], got ['d', 1].",
        ),
        (
            row(sources=[None, ["d", 4, 1]]),
            "'sources'[1] must have a start and an end from 0 on, got ['d', 4, 1].",
        ),
        (row(answers="Ann"), "'answers' must be a list, got a text."),
        (row(topic=57), "'topic' must be a text, got a number."),
    ],
)
def test_a_bad_row_is_named_with_its_line_and_remedy(
    tmp_path: Path, bad: str, message: str
) -> None:
    path = write(tmp_path / "q.jsonl", row(id="taken"), row(), bad)
    assert problems(read_jsonl, path) == [(3, message)]


def test_every_bad_row_is_reported_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", row(labels=[1]), row(), "{", row(question=""))
    assert [line for line, _ in problems(read_jsonl, path)] == [1, 3, 4]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("Who?", {" ": 0})], r"Question 'q0' cannot be written: 'candidates'\[0\] is empty"),
        ([("Who?", {})], r"'candidates' has no entries"),
        ([("Who? \ud83d", {"No.": 0})], r"'question' holds half a character"),
        ([], r"A set without questions cannot be written"),
    ],
    ids=["blank", "none", "surrogate", "no-questions"],
)
def test_what_could_not_be_read_back_is_not_written(
    tmp_path: Path, rows: list[tuple[str, dict[str, int]]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        write_jsonl(make_set(rows), tmp_path / "q.jsonl")
    assert not list(tmp_path.iterdir())


def test_writing_a_doubled_question_id_is_refused(tmp_path: Path) -> None:
    doubled = QuestionSet("x", FULL.questions[:1] * 2)
    with pytest.raises(InputError, match="question id 'first' is taken by question 1"):
        write_jsonl(doubled, tmp_path / "q.jsonl")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
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


def test_a_pair_is_a_question_with_one_answer(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", '{"question": "Who?", "sentence": "Ann did."}')
    [question] = read_pairs(path)
    assert (question.id, question.text, question.texts) == ("Q1", "Who?", ["Ann did."])
    assert labels(question) == [True]


def test_bad_pairs_are_all_named(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", '{"question": "Who?"}', '{"question": "", "sentence": "x"}')
    assert problems(read_pairs, path) == [
        (1, "No 'sentence', only 'question'. Add it to the row."),
        (2, "'question' is empty. Fill it in, or remove it."),
    ]
