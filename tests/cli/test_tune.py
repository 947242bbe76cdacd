from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from askline.tuning import ScoreTable

from ..rankers.cascade_folders import cascade_folder
from ..tuning.random_tables import table
from .conftest import Run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"kind": "cascade"}', encoding="utf-8")
    return folder


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.npz"
    table(40, 20, first_stage=True).save(path)
    return path


def test_tune_writes_the_schedule_and_the_front(
    run: Run, model: Path, scores: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run(
        *("tune", "cascade", str(model), "--table", str(scores), "--budget", "0.6"),
        *("--first", "cosinet", "--out", str(out), "--stage", "1.5", "--max-map-loss", "1"),
    )
    assert result.exit_code == 0, result.stderr
    assert "budget 60%" in result.stdout
    assert ">> cascade, 20 candidates" in result.stdout
    config = json.loads((model / "config.json").read_text("utf-8"))
    assert (config["schedule"]["budget"], config["schedule"]["stage"]) == (0.6, 1.5)
    assert sorted(path.name for path in out.iterdir()) == ["front.json", "front.svg"]
    assert ET.parse(out / "front.svg").getroot().tag.endswith("svg")


def test_tune_without_matplotlib_writes_the_front_as_json_alone(
    run: Run, model: Path, scores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    out = tmp_path / "out"
    result = run("tune", "cascade", str(model), "--table", str(scores), "--out", str(out))
    assert result.exit_code == 0, result.stderr
    assert [path.name for path in out.iterdir()] == ["front.json"]
    assert "front.svg was not drawn" in result.stderr
    assert "[plots]" in result.stderr


def test_tune_dry_run_does_not_change_the_folder(
    run: Run, model: Path, scores: Path, tmp_path: Path
) -> None:
    result = run(
        *("tune", "cascade", str(model), "--table", str(scores)),
        *("--out", str(tmp_path / "out"), "--dry-run", "--json"),
    )
    assert json.loads(result.stdout)["schedule"]["rows"][-1]["count"] == 20
    assert (model / "config.json").read_text("utf-8") == '{"kind": "cascade"}'


def test_tune_needs_sets_or_tables(run: Run, model: Path) -> None:
    result = run("tune", "cascade", str(model))
    assert result.exit_code == 2
    assert "Give either --on SET or --table FILE" in result.stderr


def test_tune_needs_the_cost_of_a_first_stage(run: Run, model: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.npz"
    table(5, 4).save(bare)
    result = run("tune", "cascade", str(model), "--table", str(bare), "--first", "rr")
    assert result.exit_code == 2
    assert "--first-layers" in result.stderr


def test_tune_reuses_saved_scores(run: Run, questions: Path, tmp_path: Path) -> None:
    model = cascade_folder(tmp_path / "tiny")
    out = tmp_path / "out"
    command = [
        *("tune", "cascade", str(model), "--on", str(questions), "--pad-to", "6"),
        *("--first", "wo+rr", "--budget", "0.9", "--out", str(out)),
    ]
    first = run(*command)
    assert first.exit_code == 0, first.stderr
    assert "wo+rr % " in first.stdout
    kept = sorted((out / "scores").iterdir())
    assert [path.name for path in kept] == ["emma.jsonl.6.all.npz"]
    stamp = kept[0].stat().st_mtime_ns
    schedule = json.loads((model / "config.json").read_text("utf-8"))["schedule"]
    assert run(*command).stdout == first.stdout
    assert ScoreTable.load(kept[0]).pad == 6
    assert kept[0].stat().st_mtime_ns >= stamp
    assert json.loads((model / "config.json").read_text("utf-8"))["schedule"] == schedule
    ranked = run("rank", "Who wrote Emma?", "--ranker", f"cascade({str(model)!r})", stdin="a\nb\n")
    assert ranked.exit_code == 0


def test_tune_refuses_scores_of_another_model(run: Run, questions: Path, tmp_path: Path) -> None:
    model = cascade_folder(tmp_path / "tiny")
    command = ["tune", "cascade", str(model), "--on", str(questions), "--out", str(tmp_path)]
    run(*command, "--budget", "1")
    (model / "tokenizer.json").write_text((model / "tokenizer.json").read_text("utf-8") + " ")
    result = run(*command, "--budget", "1")
    assert result.exit_code == 2, result.stderr
    assert "of another model or other lists" in result.stderr
