"""`python -m research.reproduce`: the report from the stored result files and from runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import research.reproduce as program
from research.reproduce import reproduce
from research.tables import Run, runs


def test_the_report_is_made_from_the_files_of_the_clone(tmp_path: Path) -> None:
    done = CliRunner().invoke(reproduce, ["--out", str(tmp_path), "--only", "report"])
    assert done.exit_code == 0, done.output
    assert "report, Results" in done.stdout
    assert "cosinet" not in done.stdout
    assert (tmp_path / "results.md").is_file()
    assert (tmp_path / "results.html").is_file()
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--only", "cosnet"], "Did you mean 'cosinet'"),
        (["--run"], "--data"),
        (["--run", "--data", ".", "--given", "vectors"], "NAME=PATH"),
    ],
    ids=["paper", "data", "given"],
)
def test_what_cannot_be_used_is_said(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASKLINE_DATA", raising=False)
    done = CliRunner().invoke(reproduce, ["--out", str(tmp_path), *arguments])
    assert done.exit_code == 2
    assert told in done.output


@pytest.mark.parametrize(("module", "extra"), [("torch", "train"), ("pytrec_eval", "eval")])
def test_quick_says_at_once_what_is_not_installed(
    module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "find_spec", lambda name: None if name == module else object())
    arguments = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path / "o")]
    done = CliRunner().invoke(reproduce, arguments)
    assert done.exit_code == 2
    assert f"[{extra}]" in done.output
    assert not (tmp_path / "o").exists()


def test_quick_runs_stay_in_their_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(runs.QUICK, "sets", Run("sets", '-c "pass"', "a moment"))
    for name in [name for name in runs.QUICK if name != "sets"]:
        monkeypatch.delitem(runs.QUICK, name)
    arguments = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path / "o")]
    done = CliRunner().invoke(reproduce, arguments)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "o" / "results" / "sets.log").is_file()
    assert "quick run" in (tmp_path / "o" / "results.md").read_text("utf-8")


def test_a_failed_run_is_told_after_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(runs.QUICK):
        monkeypatch.setitem(runs.QUICK, name, Run(name, '-c "raise SystemExit(1)"', ""))
    arguments = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path / "o")]
    done = CliRunner().invoke(reproduce, arguments)
    assert done.exit_code == 1
    assert "Runs that failed: sets" in done.output
    assert (tmp_path / "o" / "results.md").is_file()
