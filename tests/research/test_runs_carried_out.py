"""Runs: what they need, where they write, what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.tables import RUNS, Run, carry_out, checkout

WRITES = (
    "import os, pathlib; "
    "pathlib.Path(os.environ['ASKLINE_RESULTS'], 'x.json').write_text('null'); "
    "print(os.environ['ASKLINE_DATA'])"
)


def test_a_run_writes_to_its_own_folder(tmp_path: Path) -> None:
    run = Run("x", f'-c "{WRITES}"', "a moment")
    told: list[str] = []
    (done,) = carry_out([run], {"data": tmp_path}, tmp_path / "own", tell=told.append)
    assert done.problem == ""
    assert (tmp_path / "own" / "x.json").is_file()
    assert (tmp_path / "own" / "x.log").read_text().strip() == str(tmp_path)
    assert told[0].endswith("(a moment)")


def test_a_run_without_its_paths_is_left_out(tmp_path: Path) -> None:
    (done,) = carry_out([RUNS["cascade_grid"]], {"data": tmp_path}, tmp_path)
    assert done.problem == "not given: scores"


def test_a_run_that_fails_says_where_to_look(tmp_path: Path) -> None:
    (done,) = carry_out([Run("x", '-c "raise SystemExit(3)"', "")], {}, tmp_path)
    assert "exit code 3" in done.problem
    assert "x.log" in done.problem


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_run_is_a_script_of_the_clone(run: Run) -> None:
    module = run.arguments.split()[1]
    assert (checkout() / Path(*module.split("."))).with_suffix(".py").is_file()
