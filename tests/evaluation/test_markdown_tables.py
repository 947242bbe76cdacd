from __future__ import annotations

import pytest

from askline.errors import InputError
from askline.evaluation import evaluate, evaluation_rows, markdown_table
from askline.types import QuestionSet

from .conftest import Given, Reversed


def test_markdown_table_aligns_numbers_to_the_right() -> None:
    table = markdown_table(
        ["ranker", "MAP", "questions"],
        [["rr", 64.214, 243], ["wo+rr", None, 9], ["a|b\nc", 7.0, 1]],
    )
    assert table.splitlines() == [
        "| ranker |   MAP | questions |",
        "| ------ | ----: | --------: |",
        "| rr     | 64.21 |       243 |",
        "| wo+rr  |     – |         9 |",
        "| a\\|b c |  7.00 |         1 |",
    ]


def test_markdown_table_digits_and_no_rows() -> None:
    assert markdown_table(["x"], [[0.12345]], digits=3).splitlines()[-1] == "| 0.123 |"
    assert markdown_table(["x"], []).splitlines() == ["| x   |", "| --- |"]


def test_markdown_table_refuses_uneven_rows() -> None:
    with pytest.raises(InputError, match="2 cells per row as in the header, got 1 in row 2"):
        markdown_table(["a", "b"], [[1, 2], [1]])


def test_evaluation_rows_are_in_percent_with_none_for_gaps(tiny: QuestionSet) -> None:
    first = evaluate(Given(), tiny, measures="P@1")
    second = evaluate(Reversed(), tiny, measures="P@1,R@3")
    header, rows = evaluation_rows([first, second])
    assert header == ("ranker", "set", "P@1", "R@3", "questions", "ms p50", "ms p95")
    assert [row[:5] for row in rows] == [
        ("given", "tiny:test", 25.0, None, 4),
        ("reversed", "tiny:test", 25.0, 75.0, 4),
    ]
    assert "| given " in markdown_table(header, rows)
