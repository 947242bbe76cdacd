from __future__ import annotations

import sys
from pathlib import Path

import pytest

from askline.cli.config import config_path, parse_key_value_lines, read_config
from askline.corpus import Corpus
from askline.errors import DataError

from .conftest import Run

TEXT = """\
# My settings
index = "shelf"          # relative to this file
top = 1
threshold = 0.25
color = 'never'
link = "vscode://file{path}:{line}"
"""
QUESTION = "When was it lit?"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """The path of the file, which does not exist yet."""
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    path = config_path()
    assert path == tmp_path / "askline" / "config.toml"
    path.parent.mkdir()
    with Corpus.open(path.parent / "shelf", ranker=None) as corpus:
        corpus.add({"rock": "It was lit in 1698. It was lit by oil. It was lit late."})
    return path


def test_all_settings_are_read(config: Path) -> None:
    config.write_text(TEXT, encoding="utf-8")
    found = read_config(config)
    assert found.index == str(config.parent / "shelf")
    assert (found.top, found.threshold, found.color) == (1, 0.25, "never")
    assert found.link == "vscode://file{path}:{line}"


def test_without_a_file_there_are_no_settings(config: Path) -> None:
    found = read_config(config)
    assert (found.index, found.top, found.threshold, found.color) == (None, None, None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\ntop = "5"\n', ":2: top must be a positive integer, got '5'."),
        ("top = true\n", ":1: top must be a positive integer, got True."),
        ("threshold = 2\n", ":1: threshold must be a probability from 0 to 1, got 2."),
        ("color = 'red'\n", ":1: color must be auto, always or never, in quotes, got 'red'."),
        ("link = 'file:'\n", ":1: link must be an address that contains {path}"),
        ("index = 3\n", ":1: index must be a folder in quotes, got 3."),
        ("tip = 3\n", ":1: No setting 'tip'. Known: color, index, link, threshold, top. Did you"),
        ("top = 5\ncolor = never\n", ":2: Not TOML: "),
    ],
)
def test_errors_name_the_file_and_the_line(config: Path, run: Run, text: str, message: str) -> None:
    config.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_config(config)
    assert f"{config}{message}" in str(caught.value)
    result = run("rankers")
    assert result.exit_code == 2
    assert f"{config}{message}" in result.stderr


def test_a_file_that_is_named_must_exist(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKLINE_CONFIG", str(tmp_path / "none.toml"))
    result = run("rankers")
    assert result.exit_code == 2
    assert f"{tmp_path / 'none.toml'}: There is no such file." in result.stderr


def _answers(run: Run, *options: str) -> int:
    """The number of answers to a question on a terminal without text, from the default index."""
    result = run("ask", "--ranker", "bm25", "--context", "0", *options, stdin=QUESTION)
    assert result.exit_code == 0, result.output
    return sum("rock:1" in line for line in result.stdout.splitlines())


def test_option_before_environment_before_file_before_default(
    config: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('index = "shelf"\nthreshold = 0.5\n', encoding="utf-8")
    assert _answers(run) == 3
    config.write_text('index = "shelf"\ntop = 1\n', encoding="utf-8")
    assert _answers(run) == 1
    monkeypatch.setenv("ASKLINE_TOP", "2")
    assert _answers(run) == 2
    assert _answers(run, "--top", "3") == 3
    monkeypatch.setenv("ASKLINE_INDEX", str(config.parent / "missing"))
    result = run("ask", "--ranker", "bm25", stdin=QUESTION)
    assert "No index in" in result.stderr


def test_a_named_source_wins_over_the_default_index(config: Path, run: Run) -> None:
    config.write_text('index = "shelf"\n', encoding="utf-8")
    notes = config.parent / "notes.txt"
    notes.write_text("It was lit at dusk.", encoding="utf-8")
    named = run("ask", QUESTION, str(notes), "--ranker", "bm25", "--no-cache")
    assert "It was lit at dusk." in named.stdout
    piped = run("ask", QUESTION, "--ranker", "bm25", stdin="It was lit by hand.")
    assert "It was lit by hand." in piped.stdout


def test_the_color_setting_gives_way_to_the_environment(
    config: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('index = "shelf"\ncolor = "always"\n', encoding="utf-8")
    asking = ("ask", "--ranker", "bm25")
    assert "\x1b[" in run(*asking, stdin=QUESTION).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run(*asking, stdin=QUESTION).stdout


def test_the_reader_for_python_3_10_reads_the_same() -> None:
    text = TEXT + 'a = -3\nb = 1_000\nc = 2.5e3\nd = true # yes\n\n  e = "say \\"hi\\" # no"\n'
    found = parse_key_value_lines(text, "config.toml")
    assert found["e"] == 'say "hi" # no'
    assert (found["a"], found["b"], found["c"], found["d"]) == (-3, 1000, 2500.0, True)
    if sys.version_info >= (3, 11):
        import tomllib

        assert found == tomllib.loads(text)


def test_the_reader_for_python_3_10_names_every_line_that_it_cannot_read() -> None:
    with pytest.raises(DataError) as caught:
        parse_key_value_lines("top = 5\n[ask]\ncolor = never\ntop = 6\n", "config.toml")
    assert [(each.line, each.message.split(",")[0]) for each in caught.value.problems] == [
        (2, "Not TOML: expected key = value"),
        (3, "Not TOML: a value must be a number"),
        (4, "Not TOML: top is set twice"),
    ]
