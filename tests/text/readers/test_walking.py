from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from askline.errors import Problem
from askline.text.readers import ParsedDocument, find_files, read_documents

NOBODY = 65534


def plant(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A line.\n")


def names(root: Path, *paths: Path, hidden: bool = False, all_suffixes: bool = False) -> list[str]:
    found = find_files(paths or (root,), hidden=hidden, all_suffixes=all_suffixes)
    return [str(path.relative_to(root)) for path in found if isinstance(path, Path)]


def problems(*paths: Path) -> list[tuple[str, str]]:
    found = [problem for problem in read_documents(paths) if isinstance(problem, Problem)]
    return [(Path(problem.path).name, problem.message) for problem in found]


def test_folders_come_in_the_order_of_names(tmp_path: Path) -> None:
    plant(tmp_path, "b.txt", "a/z.md", "a/B.txt", "c.HTML", "a.txt", "a/x/1.csv")
    expected = ["a/B.txt", "a/x/1.csv", "a/z.md", "a.txt", "b.txt", "c.HTML"]
    assert names(tmp_path) == expected


def test_what_is_left_out_by_default(tmp_path: Path) -> None:
    kept = "kept.txt"
    plant(tmp_path, kept, ".git/a.txt", ".hidden.txt", "node_modules/a.md", "env/a.txt", "code.py")
    plant(tmp_path, "env/pyvenv.cfg", "__pycache__/a.txt")
    assert names(tmp_path) == [kept]
    assert names(tmp_path, hidden=True) == [".git/a.txt", ".hidden.txt", kept]
    assert names(tmp_path, all_suffixes=True) == ["code.py", kept]


def test_a_named_file_is_taken_whatever_it_is_called(tmp_path: Path) -> None:
    plant(tmp_path, ".notes", "code.py")
    assert names(tmp_path, tmp_path / ".notes", tmp_path / "code.py") == [".notes", "code.py"]


def test_links_in_a_circle_and_doubles_count_once(tmp_path: Path) -> None:
    plant(tmp_path, "a/one.txt", "a/two.txt")
    (tmp_path / "a/loop").symlink_to(tmp_path)
    (tmp_path / "a/same.txt").symlink_to(tmp_path / "a/one.txt")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    assert names(tmp_path) == ["a/one.txt", "a/two.txt"]
    assert names(tmp_path, tmp_path / "a/two.txt", tmp_path, tmp_path / "a/one.txt") == [
        "a/two.txt",
        "a/one.txt",
    ]


def test_problems_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    plant(tmp_path, "a.txt", "z.txt")
    (tmp_path / "binary.txt").write_bytes(b"\0\1\2")
    (tmp_path / "broken.pdf").write_bytes(b"no")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "rows.jsonl").write_text('{"text": "Good."}\n{\n')
    given = (tmp_path, tmp_path / "missing.txt")
    assert [Path(d.path).name for d in read_documents(given) if isinstance(d, ParsedDocument)] == [
        "a.txt",
        "rows.jsonl",
        "z.txt",
    ]
    assert [(name, message[:32]) for name, message in problems(*given)] == [
        ("binary.txt", "It is named as text and holds bi"),
        ("broken.pdf", "It is no pdf, or damaged or cut "),
        ("gone.txt", "It is a link that leads nowhere."),
        ("pipe.txt", "It is no file but a device or a "),
        ("rows.jsonl", "Not JSON: Expecting value at col"),
        ("missing.txt", "There is no such file. Check the"),
    ]


def test_a_file_that_vanishes_after_it_was_found_is_a_problem(tmp_path: Path) -> None:
    plant(tmp_path, "a.txt", "b.txt")
    reading = read_documents([tmp_path])
    assert isinstance(next(reading), ParsedDocument)
    (tmp_path / "b.txt").unlink()
    [problem] = reading
    assert isinstance(problem, Problem)
    assert problem.message == "There is no such file. Check the path."


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder whose contents others may see and not read; root reads as nobody."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    plant(root, "closed.txt", "inner/a.txt", "open.txt")
    (root / "closed.txt").chmod(0)
    (root / "inner").chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield root
    finally:
        if is_root:
            os.seteuid(0)
        (root / "inner").chmod(0o700)
        shutil.rmtree(root)


def test_what_may_not_be_read_is_a_problem(closed_folder: Path) -> None:
    assert problems(closed_folder) == [
        ("closed.txt", "It cannot be read: Permission denied."),
        ("inner", "It cannot be read: Permission denied."),
    ]
    read = [d for d in read_documents([closed_folder]) if isinstance(d, ParsedDocument)]
    assert [Path(document.path).name for document in read] == ["open.txt"]


def test_standard_input_comes_once() -> None:
    assert list(find_files(["-", "-"])) == [Path("-")]
