from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run


def test_eval_json_is_one_object(run: Run, questions: Path) -> None:
    result = run("eval", "wo+rr", "--on", str(questions), "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert {key: record[key] for key in ("MAP", "MRR", "P@1", "nDCG@10")} == {
        "MAP": 100.0,
        "MRR": 100.0,
        "P@1": 100.0,
        "nDCG@10": 100.0,
    }
    assert (record["questions"], record["candidates"], record["ranker"]) == (3, 6, "wo+rr")
    assert set(record["ms_per_question"]) == {"p50", "p95"}


def test_eval_filter_all_counts_unanswerable_questions_as_zero(run: Run, questions: Path) -> None:
    result = run("eval", "wo+rr", "--on", str(questions), "--filter", "all", "--json")
    assert json.loads(result.stdout)["MAP"] == 75.0


def test_eval_prints_a_table_within_80_columns(run: Run, questions: Path) -> None:
    result = run("eval", "rr", "wo+rr", "--on", str(questions))
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[-2][:3] == ["rr", "83.33", "83.33"]
    assert rows[-1][:3] == ["wo+rr", "100.00", "100.00"]


def test_eval_pads_with_candidates_of_other_questions(run: Run, questions: Path) -> None:
    result = run("eval", "wo+rr", "--on", str(questions), "--pad-to", "5", "--json")
    assert json.loads(result.stdout)["candidates"] == 15


def test_eval_takes_other_measures(run: Run, questions: Path) -> None:
    arguments = ("--on", str(questions), "--measures", "R@1,Success@2", "--json")
    record = json.loads(run("eval", "rr", *arguments).stdout)
    assert record["R@1"] == pytest.approx(200 / 3)
    assert record["Success@2"] == 100.0


def test_eval_writes_a_run_and_qrels(run: Run, questions: Path, tmp_path: Path) -> None:
    run_file, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run("eval", "rr", "--on", str(questions), "--run", str(run_file), "--qrels", str(qrels))
    assert len(run_file.read_text("utf-8").splitlines()) == 6
    assert len(qrels.read_text("utf-8").splitlines()) == 6


def test_eval_names_the_deadline(run: Run, questions: Path) -> None:
    result = run("eval", "wo+rr % 1 >> rr", "--on", str(questions), "--deadline-ms", "5000")
    assert "wo+rr % 1 >> rr within 5000 ms" in result.stdout


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
