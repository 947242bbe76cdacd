"""Result files: saved with their provenance, and to research/results only from a clean tree."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from research.benchmarks import common

REPOSITORY = common.ROOT


def _commit_all(root: Path) -> None:
    for command in (
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "All"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git clone with one commit and no changes, which `common` takes for this project."""
    root = tmp_path / "clone"
    (root / "research" / "results").mkdir(parents=True)
    (root / "code.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    _commit_all(root)
    monkeypatch.setattr(common, "ROOT", root)
    monkeypatch.setattr(common, "PUBLISHED", root / "research" / "results")
    monkeypatch.delenv("ASKLINE_RESULTS", raising=False)
    return root


def test_a_result_file_has_figures_and_provenance(clone: Path) -> None:
    path = common.save("x", {"MAP": 70.5}, "click")
    assert path == clone / "research" / "results" / "x.json"
    record = json.loads(path.read_text("utf-8"))
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=clone, capture_output=True, text=True
    )
    assert record["MAP"] == 70.5
    assert record["environment"]["commit"] == head.stdout.strip()
    assert {"numpy", "click"} <= record["environment"]["packages"].keys()
    assert common.load("x") == record


@pytest.mark.parametrize("name", ["code.py", "new.py"], ids=["changed", "untracked"])
def test_saving_from_a_changed_tree_is_an_error(name: str, clone: Path) -> None:
    (clone / name).write_text("x = 2\n")
    with pytest.raises(SystemExit, match=rf"uncommitted changes \({name}\)") as stopped:
        common.save("x", {"MAP": 70.5})
    assert not (clone / "research" / "results" / "x.json").exists()
    kept = Path(str(stopped.value).partition("figures are in ")[2].partition(". ")[0])
    assert json.loads(kept.read_text("utf-8"))["MAP"] == 70.5


def test_an_explicit_path_to_the_published_results_is_checked_too(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / "code.py").write_text("x = 2\n")
    monkeypatch.setenv("ASKLINE_RESULTS", str(clone / "research" / ".." / "research" / "results"))
    with pytest.raises(SystemExit, match="uncommitted changes"):
        common.save("x", {})


def test_a_trial_run_saves_from_a_changed_tree_to_its_own_folder(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / "code.py").write_text("x = 2\n")
    monkeypatch.setenv("ASKLINE_RESULTS", str(tmp_path / "trial"))
    path = common.save("x", {})
    assert path == tmp_path / "trial" / "x.json"
    assert json.loads(path.read_text("utf-8"))["environment"]["commit"].endswith("+")


def test_a_benchmark_can_save_after_each_row(clone: Path) -> None:
    common.save("x", {"rows": [1]})
    common.save("x", {"rows": [1, 2]})
    assert common.load("x")["rows"] == [1, 2]
    assert common.load_or_empty("y") == {}


def test_an_archive_records_the_commit_that_it_was_made_of(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".gitattributes", common.ARCHIVED):
        (clone / name).write_text((REPOSITORY / name).read_text("utf-8"))
    _commit_all(clone)
    archive = tmp_path / "archive"
    archive.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=clone, capture_output=True, check=True)
    subprocess.run(["tar", "x"], cwd=archive, input=packed.stdout, check=True)
    head = common.environment()["commit"]
    assert head
    assert not head.endswith("+")
    monkeypatch.setattr(common, "ROOT", archive)
    monkeypatch.setenv("PATH", "")
    assert common.environment()["commit"] == head


def test_outside_a_clone_nothing_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(common, "ROOT", tmp_path)
    monkeypatch.setattr(common, "PUBLISHED", tmp_path / "results")
    monkeypatch.delenv("ASKLINE_RESULTS", raising=False)
    with pytest.raises(SystemExit, match="not a git clone"):
        common.save("x", {})
