from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from askline.cli import cli

Run = Callable[..., Result]
SETTINGS = ("ASKLINE_CONFIG", "ASKLINE_INDEX", "ASKLINE_THRESHOLD", "ASKLINE_TOP")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`askline …` in this process, without the user's own settings."""
    for name in ("ASKLINE_DATA", "NO_COLOR", "FORCE_COLOR", "FORCE_HYPERLINK", *SETTINGS):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("COLUMNS", "80")

    def invoke(*arguments: str, stdin: str | bytes = "", color: bool = False) -> Result:
        return CliRunner().invoke(cli, arguments, input=stdin, prog_name="askline", color=color)

    return invoke


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four hand-written questions, one of them without an answer, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rows = [
        ("Who wrote Emma?", ["Emma is a novel.", "Jane Austen wrote Emma."], [0, 1]),
        ("When did it appear?", ["It appeared in 1815.", "It sold well."], [1, 0]),
        ("Where is Highbury?", ["Highbury is a village near London.", "No."], [1, 0]),
        ("What colour is it?", ["Nobody says.", "It is not known."], [0, 0]),
    ]
    path = Path("emma.jsonl")
    path.write_text(
        "".join(
            json.dumps({"question": question, "candidates": candidates, "labels": labels}) + "\n"
            for question, candidates, labels in rows
        ),
        encoding="utf-8",
    )
    return path
