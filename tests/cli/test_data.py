from __future__ import annotations

import json
from pathlib import Path

from .conftest import Run


def test_data_stats_counts_and_fits_80_columns(run: Run, questions: Path) -> None:
    record = json.loads(run("data", "stats", str(questions), "--json").stdout)
    assert (record["questions"], record["candidates"], record["answerable"]) == (4, 8, 3)
    table = run("data", "stats", str(questions)).stdout
    assert all(len(line) <= 80 for line in table.splitlines())


def test_data_export_writes_a_loadable_set(run: Run, questions: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    assert run("data", "export", str(questions), "--out", str(copy)).exit_code == 0
    assert run("data", "stats", str(copy), "--json").stdout.count('"answerable": 3') == 1


def test_data_list_prints_names(run: Run) -> None:
    assert "wikiqa:test" in run("data", "list").stdout.splitlines()


BAD_ROWS = """\
{"question": "Fine?", "candidates": ["a"], "labels": [1]}
{"question": "No labels?", "candidates": ["a"]}
{"question": "Wrong label?", "candidates": ["a"], "labels": [2]}
{"question": "Empty candidate?", "candidates": [""], "labels": [1]}
{"question": "None?", "candidates": [], "labels": []}
{"question": "Not JSON
"""


def test_all_bad_rows_are_reported_with_their_lines(run: Run, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.jsonl", tmp_path / "out.jsonl"
    bad.write_text(BAD_ROWS, encoding="utf-8")
    for command in (
        ["eval", "rr", "--on", str(bad)],
        ["data", "export", str(bad), "--out", str(out)],
    ):
        result = run(*command)
        assert result.exit_code == 2
        assert result.stdout == ""
        for line in (2, 3, 4, 5, 6):
            assert f"bad.jsonl:{line}: " in result.stderr
    assert not out.exists()
