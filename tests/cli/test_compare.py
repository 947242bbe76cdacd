from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run


def test_compare_json_has_the_difference_and_the_wins(run: Run, questions: Path) -> None:
    result = run("compare", "wo+rr", "rr", "--on", str(questions), "--measures", "MAP", "--json")
    record = json.loads(result.stdout)
    assert record["difference"] == pytest.approx(100 / 6)
    assert (record["wins"], record["ties"], record["losses"]) == (1, 2, 0)


def test_compare_prints_a_table_within_80_columns(run: Run, questions: Path) -> None:
    result = run("compare", "wo+rr", "rr", "--on", str(questions))
    assert result.exit_code == 0, result.stderr
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "+16.67" in result.stdout
