"""`python -m research.reproduce`: the report from the stored result files and from runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import research.reproduce as program
from research import runs
from research.reproduce import reproduce
from research.runs import Run


def test_the_report_is_made_from_the_files_of_the_clone(tmp_path: Path) -> None:
    done = CliRunner().invoke(reproduce, ["--out", str(tmp_path), "--only", "report"])
    assert done.exit_code == 0, done.output
    assert "report, Results" in done.stdout
    assert "cosinet" not in done.stdout
    assert (tmp_path / "results.md").is_file()
    assert (tmp_path / "results.html").is_file()
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "cosnet"], "Did you mean 'cosinet'"),
        (["--run"], "--data"),
        (["--run", "--data", ".", "--given", "vectors"], "NAME=PATH"),
    ],
    ids=["paper", "data", "given"],
)
def test_unusable_options_are_reported(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASKLINE_DATA", raising=False)
    done = CliRunner().invoke(reproduce, ["--out", str(tmp_path), *arguments])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(("module", "extra"), [("torch", "train"), ("pytrec_eval", "eval")])
def test_quick_reports_a_missing_extra_before_the_first_run(
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


def test_a_failed_run_is_reported_after_the_report_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(runs.QUICK):
        monkeypatch.setitem(runs.QUICK, name, Run(name, '-c "raise SystemExit(1)"', ""))
    arguments = ["--quick", "--data", str(tmp_path), "--out", str(tmp_path / "o")]
    done = CliRunner().invoke(reproduce, arguments)
    assert done.exit_code == 1
    assert "Runs that failed: sets" in done.output
    assert (tmp_path / "o" / "results.md").is_file()
