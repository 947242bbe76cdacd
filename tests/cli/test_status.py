from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "rock.txt").write_text("The lamp was lit in 1698. It burns.", encoding="utf-8")
    (folder / "bread.txt").write_text("Yeast makes dough rise.", encoding="utf-8")
    return folder


def test_status_shows_counts_and_unreadable_files(run: Run, notes: Path) -> None:
    (notes / "image.txt").write_bytes(b"\x89PNG\x00\x01")
    run("index", "notes", "--out", "index")
    result = run("status", "index")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:2] == ["documents   2", "sentences   3"]
    assert "up to date" in result.stdout
    assert lines[-4] == "unreadable  1"
    assert "image.txt: It contains an image and no text." in lines[-3]
    assert lines[-2:] == ["Not read (1):", "  1  binary data  .txt 1"]
    record = json.loads(run("status", "index", "--json").stdout)
    assert (record["documents"], record["searchable"]) == (2, True)


def test_status_counts_what_was_not_read(run: Run, notes: Path) -> None:
    (notes / "a.png").write_bytes(b"\x89PNG")
    (notes / "b.png").write_bytes(b"\x89PNG")
    (notes / ".hidden").mkdir()
    (notes / "empty.md").write_text("")
    run("index", "notes", "--out", "index")
    assert run("status", "index").stdout.splitlines()[-4:] == [
        "Not read (4):",
        "  2  binary data  .png 2",
        "  1  no text      .md 1",
        "  1  hidden       folder 1",
    ]
    record = json.loads(run("status", "index", "--json").stdout)
    assert record["unreadable"] == []
    assert record["not_read"][0] == {
        "reason": "binary",
        "kind": ".png",
        "count": 2,
        "example": str(notes / "a.png"),
    }
    (notes / "a.png").unlink()
    (notes / "empty.md").write_text("Now it has text.")
    run("index", "notes", "--out", "index")
    assert "1  binary data  .png 1" in run("status", "index").stdout
    assert "no text" not in run("status", "index").stdout


def test_status_of_a_missing_index_is_an_error(run: Run) -> None:
    result = run("status", "nowhere")
    assert result.exit_code == 1
    assert "No index in nowhere." in result.stderr
