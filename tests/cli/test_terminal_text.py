from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.cli.output import columns, harmless, wrapped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("one two", ["one two"]),
        ("eightlet ters", ["eightlet", "ters"]),
        ("overlongword x", ["overlong", "word x"]),
        ("東京タワーは赤い", ["東京タワ", "ーは赤い"]),
        ("ab 東京タワー", ["ab 東京", "タワー"]),
        ("cafe\u0301 cafe\u0301", ["cafe\u0301", "cafe\u0301"]),
    ],
    ids=["empty", "words", "fits", "full line", "long word", "wide", "both", "accents"],
)
def test_lines_of_eight_columns(text: str, expected: list[str]) -> None:
    assert wrapped(text, 8) == expected


@given(st.text(st.sampled_from("ab 東🗼\u0301é"), max_size=60), st.integers(2, 12))
def test_no_line_is_too_long_and_nothing_is_lost(text: str, room: int) -> None:
    text = " ".join(text.split())
    lines = wrapped(text, room)
    assert all(columns(line) <= room for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_what_a_terminal_would_obey_is_taken_out_in_place() -> None:
    assert harmless("a\x1b[31mb\x07c\x9bd\u2028é") == "a [31mb c d\u2028é"
