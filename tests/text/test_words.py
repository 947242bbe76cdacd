from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.text.words import TEXT_SEPARATOR, split_words, split_words_flat


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Who wrote EMMA?", ["who", "wrote", "emma"]),
        ("don't re-do", ["don", "t", "re", "do"]),
        ("in 1973, US$3.50", ["in", "1973", "us", "3", "50"]),
        ("Café cafe\u0301", ["café", "café"]),
        ("ﬁne ２０", ["fine", "20"]),
        ("東京は大きい", list("東京は大きい")),
        ("Größe L'été", ["größe", "l", "été"]),
        ("😀 …", []),
    ],
)
def test_split_words(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected


@given(st.text())
def test_words_are_not_empty_and_have_no_white_space(text: str) -> None:
    assert all(word and not any(mark.isspace() for mark in word) for word in split_words(text))


@given(st.text(alphabet="abcXYZ ,.'é", max_size=40))
def test_ascii_and_other_text_follow_the_same_rule(text: str) -> None:
    with_other_letter = split_words(text + " ж")
    assert with_other_letter == [*split_words(text), "ж"]


@given(st.lists(st.text(alphabet="aB9_ ,.\0\n\x1cé東\u2028", max_size=12), min_size=1))
def test_flat_words_are_the_words_of_each_text(texts: list[str]) -> None:
    expected = split_words(texts[0])
    for text in texts[1:]:
        expected += [TEXT_SEPARATOR, *split_words(text)]
    assert split_words_flat(texts) == expected
