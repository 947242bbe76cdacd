from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.cli.output import display_width, print_stages, print_wrapped, replace_controls, wrap
from askline.types import StageReport


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
def test_wrap_at_eight_columns(text: str, expected: list[str]) -> None:
    assert wrap(text, 8) == expected


@given(st.text(st.sampled_from("ab 東🗼\u0301é"), max_size=60), st.integers(2, 12))
def test_wrap_keeps_all_text_and_the_width(text: str, width: int) -> None:
    text = " ".join(text.split())
    lines = wrap(text, width)
    assert all(display_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_messages_are_wrapped_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "notes/lamp.bin: It contains binary data and no text. Leave it out or convert it."
    print_wrapped(message, margin=2)
    assert capsys.readouterr().err == f"  {message}\n"
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    print_wrapped(message, margin=2)
    assert capsys.readouterr().err == (
        "  notes/lamp.bin: It contains binary data and no text.\n    Leave it out or convert it.\n"
    )


def test_replace_controls_keeps_offsets() -> None:
    assert replace_controls("a\x1b[31mb\x07c\x9bd\u2028é") == "a [31mb c d\u2028é"


def test_stages_that_read_in_context_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    alone = StageReport("cascade(depth=4)", 9, 3, 0.01)
    print_stages([alone, replace(alone, in_context=True)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "stage",
        "cascade(depth=4)",
        "cascade(depth=4) in context",
    ]
