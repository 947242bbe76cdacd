from __future__ import annotations

from pathlib import Path

import pytest

from askline.data import read_asnq

from .samples import labels, problems, write


def test_label_four_is_the_answer(tmp_path: Path) -> None:
    rows = [f"what is tin\tSentence {label}.\t{label}" for label in (1, 4, 2, 3)]
    [question] = read_asnq(write(tmp_path / "dev.tsv", *rows))
    assert (question.id, question.text) == ("Q1", "what is tin")
    assert labels(question) == [False, True, False, False]
    assert [candidate.id for candidate in question.candidates] == ["Q1-0", "Q1-1", "Q1-2", "Q1-3"]


def test_rows_are_grouped_by_question_and_quotes_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.tsv", 'a\t"Open.\t1', "b\tTwo.\t4", "a\tOne.\t4", "", "a\tOne.\t2")
    found = read_asnq(path, name="asnq:dev")
    assert [(question.id, question.texts) for question in found] == [
        ("Q1", ['"Open.', "One.", "One."]),
        ("Q2", ["Two."]),
    ]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            "what\tTin.",
            "Expected question, sentence and label, separated by tabs, got 2 columns. "
            "Add the missing ones, or remove the row.",
        ),
        ("what\tTin.\t0", "Label must be 1, 2, 3 or 4, got '0'."),
        ("what\tTin.\t44", "Label must be 1, 2, 3 or 4, got '44'."),
        ("what\t \t4", "The question or the sentence is empty. Remove the row."),
        ("\tTin.\t4", "The question or the sentence is empty. Remove the row."),
    ],
    ids=["columns", "label", "long-label", "sentence", "question"],
)
def test_a_bad_row_is_named(tmp_path: Path, bad: str, message: str) -> None:
    path = write(tmp_path / "dev.tsv", "what\tTin.\t1", bad, bad)
    assert problems(read_asnq, path) == [(2, message), (3, message)]
