from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.text.words import (
    TEXT_SEPARATOR,
    identifier_words,
    normalize,
    split_identifiers,
    split_words,
    split_words_flat,
)


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


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("set max_retry_count", ["max", "retry", "count"]),
        ("a RetryPolicy", ["retry", "policy"]),
        ("--dry-run, -v", ["dryrun"]),
        ("foo.bar.baz(x)", ["foobarbaz"]),
        ("HTTPServer2", ["http", "server", "2"]),
        ("python3", ["python", "3"]),
        ("__init__", ["init"]),
        ("retryPolicy.max_count", ["retry", "policy", "max", "count", "retrypolicymaxcount"]),
        ("größe_max", ["größe", "max"]),
        ("In the 1990s, e.g. at 9 a.m., the well-known U.S. B52 flew. Next.", []),
        ("a_" * 120, []),
        ("", []),
    ],
)
def test_split_identifiers_adds_parts_and_wholes(text: str, added: list[str]) -> None:
    assert split_identifiers(text) == [*split_words(text), *added]
    assert identifier_words(text) == added


@given(st.text(alphabet="aZ9_.- é", max_size=30))
def test_identifiers_add_words_of_the_text(text: str) -> None:
    for word in identifier_words(text):
        assert word
        assert word in normalize(text).replace("_", "").replace(".", "").replace("-", "")
