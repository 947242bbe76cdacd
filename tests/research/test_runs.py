"""Runs: the paths they need, where they write, and how failures are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.runs import RUNS, Run, checkout, run_all

WRITES = (
    "import os, pathlib; "
    "pathlib.Path(os.environ['ASKLINE_RESULTS'], 'x.json').write_text('null'); "
    "print(os.environ['ASKLINE_DATA'])"
)


def test_a_run_writes_to_its_own_folder(tmp_path: Path) -> None:
    run = Run("x", f'-c "{WRITES}"', "a moment")
    messages: list[str] = []
    (done,) = run_all([run], {"data": tmp_path}, tmp_path / "own", log=messages.append)
    assert done.problem == ""
    assert (tmp_path / "own" / "x.json").is_file()
    assert (tmp_path / "own" / "x.log").read_text().strip() == str(tmp_path)
    assert messages[0].endswith("(a moment)")


def test_a_run_without_its_paths_is_skipped(tmp_path: Path) -> None:
    (done,) = run_all([RUNS["cascade_grid"]], {"data": tmp_path}, tmp_path)
    assert done.problem == "not given: scores"


def test_a_failed_run_names_its_log(tmp_path: Path) -> None:
    (done,) = run_all([Run("x", '-c "raise SystemExit(3)"', "")], {}, tmp_path)
    assert "exit code 3" in done.problem
    assert "x.log" in done.problem


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_run_is_a_program_in_research(run: Run) -> None:
    module = run.arguments.split()[1]
    assert (checkout() / Path(*module.split("."))).with_suffix(".py").is_file()
