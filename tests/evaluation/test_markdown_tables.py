from __future__ import annotations

import pytest

from askline.errors import InputError
from askline.evaluation import markdown_table


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


def test_markdown_table_without_rows() -> None:
    assert markdown_table(["x"], []).splitlines() == ["| x   |", "| --- |"]


def test_markdown_table_refuses_uneven_rows() -> None:
    with pytest.raises(InputError, match="2 cells per row as in the header, got 1 in row 2"):
        markdown_table(["a", "b"], [[1, 2], [1]])
