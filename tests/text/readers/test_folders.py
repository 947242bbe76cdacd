"""Which files of a folder are read, and why others are not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from askline.errors import DataError, Problem
from askline.text.readers import FileSelection, SkippedFile, find_files, read_document
from askline.text.readers.folders import IgnoreRules

from .samples import lines, make_pdf


def write(root: Path, name: str, content: str | bytes = "A line.\n") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def taken(root: Path, *paths: Path, **options: object) -> list[str]:
    found = find_files(paths or (root,), FileSelection(**options))  # type: ignore[arg-type]
    return [str(path.relative_to(root)) for path in found if isinstance(path, Path)]


def skipped(root: Path, **options: object) -> list[tuple[str, str]]:
    found = find_files([root], FileSelection(**options))  # type: ignore[arg-type]
    return [
        (str(Path(each.path).relative_to(root)), each.reason)
        for each in found
        if not isinstance(each, Path)
    ]


def test_everything_that_is_not_read_has_a_reason(tmp_path: Path) -> None:
    for name in (
        "a.txt",
        ".hidden.md",
        ".git/config",
        "node_modules/a.md",
        "old.doc",
        "picture.png",
    ):
        write(tmp_path, name)
    write(tmp_path, "data.unknown", b"\0\1\2")
    write(tmp_path, "LICENSE", "You may copy this.")
    write(tmp_path, "notes.unknown", "Text with an unknown suffix.")
    write(tmp_path, "env/pyvenv.cfg")
    write(tmp_path, ".gitignore", "build/\n")
    write(tmp_path, "build/a.txt")
    (tmp_path / "out.txt").symlink_to("/etc/hostname")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    assert taken(tmp_path) == ["LICENSE", "a.txt", "notes.unknown"]
    assert dict(skipped(tmp_path)) == {
        ".git": "hidden",
        ".gitignore": "hidden",
        ".hidden.md": "hidden",
        "build": "ignored",
        "data.unknown": "binary",
        "env": "packages",
        "gone.txt": "unreachable",
        "node_modules": "packages",
        "old.doc": "unsupported",
        "out.txt": "link",
        "picture.png": "binary",
    }


def test_everything_reads_all_but_version_control(tmp_path: Path) -> None:
    for name in (".a.txt", ".git/b.txt", "node_modules/c.txt", "build/d.txt"):
        write(tmp_path, name)
    write(tmp_path, ".gitignore", "build/\n")
    found = taken(tmp_path, everything=True)
    assert found == [".a.txt", ".gitignore", "build/d.txt", "node_modules/c.txt"]


def test_nested_gitignore_files_and_negation(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", "*.log\n!keep.log\n/top.txt\n# a comment\n\ndocs/*.tmp.md\n")
    write(tmp_path, "sub/.gitignore", "!again.log\nlocal.txt\n")
    for name in ("a.log", "keep.log", "top.txt", "sub/top.txt", "sub/again.log", "sub/b.log"):
        write(tmp_path, name)
    for name in ("sub/local.txt", "local.txt", "docs/a.tmp.md", "docs/x/a.tmp.md"):
        write(tmp_path, name)
    assert taken(tmp_path) == [
        "docs/x/a.tmp.md",
        "keep.log",
        "local.txt",
        "sub/again.log",
        "sub/top.txt",
    ]


def test_a_gitignore_above_the_folder_counts_unless_it_hides_the_folder(tmp_path: Path) -> None:
    write(tmp_path, ".git/HEAD")
    write(tmp_path, ".gitignore", "secret.txt\nbuild/\n")
    write(tmp_path, "docs/secret.txt")
    write(tmp_path, "docs/open.txt")
    write(tmp_path, "build/docs/secret.txt")
    assert taken(tmp_path, tmp_path / "docs") == ["docs/open.txt"]
    assert taken(tmp_path, tmp_path / "build/docs") == ["build/docs/secret.txt"]
    assert taken(tmp_path, tmp_path / "docs/secret.txt") == ["docs/secret.txt"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["*.md"], [], ["docs/a.md", "docs/old/b.md"]),
        (["docs/"], ["*.txt"], ["docs/a.md", "docs/old/b.md"]),
        ([], ["old/"], ["c.txt", "docs/a.md", "docs/d.txt"]),
        (["docs/*.md"], [], ["docs/a.md"]),
        (["docs/**/*.md"], [], ["docs/a.md", "docs/old/b.md"]),
        (["*.txt", "a.*"], ["/c.txt"], ["docs/a.md", "docs/d.txt"]),
        (["nothing"], [], []),
    ],
)
def test_include_and_exclude(
    tmp_path: Path, include: list[str], exclude: list[str], expected: list[str]
) -> None:
    for name in ("c.txt", "docs/a.md", "docs/d.txt", "docs/old/b.md"):
        write(tmp_path, name)
    options = {"include": tuple(include), "exclude": tuple(exclude)}
    assert taken(tmp_path, **options) == expected
    assert {reason for _, reason in skipped(tmp_path, **options)} <= {"excluded"}


def test_options_apply_to_files_that_are_named(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    write(tmp_path, "a.csv")
    given = [tmp_path / "a.md", tmp_path / "a.csv"]
    found = list(find_files(given, FileSelection(exclude=("*.csv",))))
    assert found == [given[0], SkippedFile(str(given[1]), "excluded")]


@pytest.mark.parametrize(
    ("pattern", "matches", "differs"),
    [
        ("*.log", ["a.log", "x/a.log"], ["a.logs", "log"]),
        ("/a.txt", ["a.txt"], ["x/a.txt"]),
        ("a/b", ["a/b"], ["x/a/b", "b"]),
        ("a/**", ["a/b", "a/b/c"], ["a"]),
        ("**/b", ["b", "a/b", "a/x/b"], ["ab"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/b/c"]),
        ("a?c", ["abc"], ["ac", "a/c", "abbc"]),
        ("[a-c].txt", ["b.txt"], ["d.txt"]),
        ("[!a].txt", ["b.txt"], ["a.txt"]),
        ("[^a].txt", ["b.txt"], ["a.txt"]),
        (r"\!x", ["!x"], ["x"]),
        (r"\#x", ["#x"], []),
        (r"a\*", ["a*"], ["ab"]),
        ("x ", ["x"], ["x "]),
        ("x\\ ", ["x "], ["x"]),
        ("[", ["["], ["a"]),
    ],
)
def test_patterns_mean_what_they_mean_to_git(
    pattern: str, matches: list[str], differs: list[str]
) -> None:
    rules = IgnoreRules([pattern])
    for path in matches:
        assert rules.decide(path.split("/"), is_folder=False) is True, path
    for path in differs:
        assert rules.decide(path.split("/"), is_folder=False) is None, path


def test_a_pattern_of_many_stars_takes_linear_time() -> None:
    rules = IgnoreRules(["*a" * 100 + "b", "**/" * 200 + "x", "*" * 900 + "y"])
    start = time.process_time()
    assert rules.decide(["a" * 250] * 40, is_folder=False) is None
    assert time.process_time() - start < 1


def test_folders_only_and_the_last_rule_counts() -> None:
    rules = IgnoreRules(["build/", "*.md", "!README.md", "", "# a"])
    assert rules.decide(["build"], is_folder=True) is True
    assert rules.decide(["build"], is_folder=False) is None
    assert rules.decide(["README.md"], is_folder=False) is False
    assert rules.decide(["a.md"], is_folder=False) is True


def test_files_without_a_known_suffix_are_read_by_their_content(tmp_path: Path) -> None:
    contents: dict[str, str | bytes] = {
        "notes": "Plain text.",
        "tool": "#!/usr/bin/env python3\n# The comment of the tool.\nx = 1\n",
        "page": "<!DOCTYPE html><p>A page.</p>",
        "feed": "<?xml version='1.0'?><a><p>An element.</p></a>",
        "letter": r"{\rtf1 A letter.\par}",
        "paper": make_pdf([lines("A paper.")]),
        "Makefile": "# Builds the tower.\nall:\n\tbuild\n",
        "manual": ".TH LAMP 1\n.SH NAME\nlamp \\- lights it\n",
    }
    kinds = {}
    for name, content in contents.items():
        write(tmp_path, name, content)
        document = read_document(tmp_path / name)
        kinds[name] = document.kind
        assert "\\" not in document.text
        assert "<" not in document.text
    assert kinds == {
        "notes": "text",
        "tool": "source",
        "page": "html",
        "feed": "xml",
        "letter": "rtf",
        "paper": "pdf",
        "Makefile": "source",
        "manual": "manpage",
    }


def test_a_binary_file_that_is_named_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.bin", bytes(range(256)))
    with pytest.raises(
        DataError, match="It contains binary data and no text. Leave it out"
    ) as info:
        read_document(tmp_path / "a.bin")
    assert info.value.problems[0].reason == "binary"


def test_a_path_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    [problem] = find_files([tmp_path / "missing"])
    assert isinstance(problem, Problem)
    assert problem.reason == "unreachable"


def test_a_walk_over_many_files_opens_none_of_known_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        write(tmp_path, f"{number}.md")
        write(tmp_path, f"{number}.png")
    monkeypatch.setattr("builtins.open", None)
    assert len(taken(tmp_path)) == 20
