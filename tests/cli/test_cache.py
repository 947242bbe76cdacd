from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from askline.corpus.cache import cached_index_folder
from askline.corpus.lock import writer_lock
from askline.engine.graph_cache import GraphCache

from .conftest import Run


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Cached indexes of two paths in the current folder, one of them unused for ten days."""
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = {}
    for path, size, days in (("notes/old", 3_000, 10), ("notes", 5_000_000, 0)):
        folder = found[path] = cached_index_folder([path])
        (folder / "store.sqlite").write_bytes(b"x" * size)
        os.utime(folder, (time.time() - days * 86_400 - 5,) * 2)
    return found


def test_list_shows_paths_sizes_and_ages(run: Run) -> None:
    result = run("cache")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["paths", "size", "age"],
        ["notes", "5.0", "MB", "5", "s"],
        ["notes/old", "3", "kB", "10", "d"],
    ]
    assert run("cache", "list").stdout == result.stdout


def test_list_as_json(run: Run, tmp_path: Path) -> None:
    records = json.loads(run("cache", "list", "--json").stdout)
    assert [each["paths"] for each in records] == [
        [str(tmp_path / "notes")],
        [str(tmp_path / "notes" / "old")],
    ]
    assert records[1]["size_bytes"] == 3_000
    assert records[1]["age_seconds"] == pytest.approx(10 * 86_400, abs=60)


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["--all"], []),
        (["--older-than", "9"], ["notes"]),
        (["--older-than", "11"], ["notes", "notes/old"]),
        (["notes/old"], ["notes"]),
        (["notes"], []),
        (["notes", "--older-than", "9"], ["notes"]),
        (["elsewhere"], ["notes", "notes/old"]),
    ],
    ids=" ".join,
)
def test_clear_deletes_what_it_is_told(
    run: Run, folders: dict[str, Path], arguments: list[str], left: list[str]
) -> None:
    result = run("cache", "clear", *arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{2 - len(left)} deleted: ")
    assert sorted(path for path, folder in folders.items() if folder.exists()) == left
    records = list(folders["notes"].parent.glob("*.json"))
    assert len(records) == len(left)


def test_clear_leaves_an_index_that_is_in_use(run: Run, folders: dict[str, Path]) -> None:
    with writer_lock(folders["notes"]):
        result = run("cache", "clear", "--all")
    assert result.exit_code == 1
    assert result.stdout.startswith("1 deleted: 3 kB")
    assert result.stderr == "In use and not deleted: notes\n"
    assert folders["notes"].exists()


def test_graphs_of_models_are_listed_and_deleted(run: Run, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "weights.safetensors"):
        (model / name).write_bytes(b"{}")
    graphs = GraphCache.of_model(model)
    assert graphs is not None
    graphs.store("layers", b"x" * 2_000_000)
    assert ["graphs", "of", "model", "2.0", "MB", "0", "s"] in [
        line.split() for line in run("cache").stdout.splitlines()
    ]
    records = json.loads(run("cache", "list", "--json").stdout)
    assert [each["kind"] for each in records] == ["index", "index", "graphs"]
    assert run("cache", "clear", "--older-than", "1").stdout.startswith("1 deleted: ")
    assert graphs.path("layers").exists()
    assert run("cache", "clear", "--all").stdout == "2 deleted: 7.0 MB\n"
    assert not graphs.path("layers").exists()
    assert run("cache").stdout.startswith("The cache is empty: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "Give PATHs, --older-than DAYS or --all."), (["--all", "notes"], "leave out PATHs")],
)
def test_clear_needs_one_choice(run: Run, arguments: list[str], message: str) -> None:
    result = run("cache", "clear", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_index_of_an_earlier_version_has_unknown_paths(
    run: Run, folders: dict[str, Path]
) -> None:
    for folder in folders.values():
        folder.with_name(f"{folder.name}.json").unlink()
    assert f"unknown, in {folders['notes']}" in run("cache").stdout
    run("cache", "clear", "--all")
    assert run("cache").stdout.startswith("The cache is empty: ")
