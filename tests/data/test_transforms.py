from __future__ import annotations

import pytest

from askline.data import filter_questions
from askline.errors import UnknownNameError

from .samples import make_set

MIXED = make_set(
    [
        ("both", {"a": 1, "b": 0}),
        ("negatives", {"a": 0, "b": 0}),
        ("positives", {"a": 1, "b": 1}),
        ("nothing", {}),
    ]
)


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("all", ["both", "negatives", "positives", "nothing"]),
        ("answerable", ["both", "positives"]),
        ("both", ["both"]),
    ],
)
def test_select_keeps_the_questions_that_pass(which: str, expected: list[str]) -> None:
    found = filter_questions(MIXED, which)
    assert [question.text for question in found] == expected
    assert found.name == MIXED.name


def test_an_unknown_filter_is_told_with_the_known_ones() -> None:
    message = r"No filter 'answered'\. Known: all, answerable, both\. Did you mean 'answerable'\?"
    with pytest.raises(UnknownNameError, match=message):
        filter_questions(MIXED, "answered")
