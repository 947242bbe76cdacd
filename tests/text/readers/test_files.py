from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import DataError, Problem
from askline.text.readers import (
    MAX_FILE_BYTES,
    FileSelection,
    ParsedDocument,
    find_files,
    iter_sentences,
    markdown,
    read_document,
    read_documents,
)
from askline.text.readers.offsets import line_starts
from askline.text.readers.plain_text import read_plain_text

from .samples import check, originals, read, shown


def test_offsets_of_plain_text_are_those_of_the_file(tmp_path: Path) -> None:
    content = "One sentence. Another\r\none.\r\n\r\nA third."
    document = read(tmp_path, "notes.txt", content)
    assert document.text == content
    assert document.title == "notes"
    assert document.sha256 == hashlib.sha256(content.encode()).hexdigest()
    assert originals(document) == ["One sentence.", "Another\r\none.", "A third."]
    assert [str(document.place(s.start)) for s in iter_sentences(document)] == [
        "line 1",
        "line 1",
        "line 4",
    ]
    check(document)


@given(st.text(st.sampled_from("ab .\n\r\u2028\x0cÉ#-1"), max_size=80))
def test_line_starts_match_universal_newlines(text: str) -> None:
    starts = line_starts(text)
    assert list(read_plain_text(text).starts) == list(starts)
    ended = io.StringIO(text, newline=None).read() + "x"  # every line end as \n
    assert len(starts) == ended.count("\n") + 1


def test_white_space_has_no_sentences(tmp_path: Path) -> None:
    assert shown(read(tmp_path, "a.txt", " \n ")) == []


def test_file_over_the_size_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as stream:
        stream.truncate(500_000_000)
    with pytest.raises(DataError, match="at most 268,435,456 bytes, got 500,000,000 or more"):
        read_document(path)
    assert path.stat().st_size > MAX_FILE_BYTES


def test_line_of_a_million_characters_is_read(tmp_path: Path) -> None:
    document = read(tmp_path, "a.txt", "word " * 200_000)
    found = shown(document)
    assert sum(text.count("word") for _, text in found) == 200_000
    assert max(len(text) for _, text in found) <= 300


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["txt", "md", "html", "csv"])
def test_memory_is_proportional_to_file_size(tmp_path: Path, suffix: str) -> None:
    row = "A short sentence, <b>marked</b> *twice* or not. And another one follows it here.\n\n"
    path = tmp_path / f"a.{suffix}"
    path.write_text(("text\n" if suffix == "csv" else "") + row.replace(",", "") * 2_000)
    tracemalloc.start()
    document = read_document(path)
    count = sum(1 for _ in iter_sentences(document))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count >= 4_000
    assert peak < 10 * path.stat().st_size


def test_standard_input_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (7, 6):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A line.")))
        if limit == 6:
            with pytest.raises(DataError, match=r"at most 6 bytes, got 7 or more\. Split it\."):
                read_document("-", max_bytes=limit)
        else:
            document = read_document("-", max_bytes=limit)
            assert document.title == "standard input"
            assert (document.path, document.text) == ("-", "A line.")


def test_missing_file_and_folder_raise_data_error(tmp_path: Path) -> None:
    for path in (tmp_path / "no.txt", tmp_path):
        with pytest.raises(DataError, match="It cannot be read: "):
            read_document(path)


def test_long_text_is_split_like_short_text(tmp_path: Path) -> None:
    paragraph = "Dr. Smith came in 1931. He left\nsoon after.\n\n"
    document = read(tmp_path, "a.txt", paragraph * 5_000)
    found = [text for _, text in shown(document)]
    assert found == ["Dr. Smith came in 1931.", "He left\nsoon after."] * 5_000


NOBODY = 65534


def plant(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A line.\n")


def names(root: Path, *paths: Path, everything: bool = False) -> list[str]:
    found = find_files(paths or (root,), FileSelection(everything=everything))
    return [str(path.relative_to(root)) for path in found if isinstance(path, Path)]


def problems(*paths: Path) -> list[tuple[str, str]]:
    found = [problem for problem in read_documents(paths) if isinstance(problem, Problem)]
    return [(Path(problem.path).name, problem.message) for problem in found]


def test_files_are_sorted_by_name(tmp_path: Path) -> None:
    plant(tmp_path, "b.txt", "a/z.md", "a/B.txt", "c.HTML", "a.txt", "a/x/1.csv")
    expected = ["a/B.txt", "a/x/1.csv", "a/z.md", "a.txt", "b.txt", "c.HTML"]
    assert names(tmp_path) == expected


def test_hidden_files_and_environments_are_skipped_by_default(tmp_path: Path) -> None:
    kept = "kept.txt"
    plant(tmp_path, kept, ".git/a.txt", ".hidden.txt", "node_modules/a.md", "env/a.txt")
    plant(tmp_path, "env/pyvenv.cfg", "__pycache__/a.txt")
    assert names(tmp_path) == [kept]
    found = names(tmp_path, everything=True)
    assert found == [
        ".hidden.txt",
        "__pycache__/a.txt",
        "env/a.txt",
        "env/pyvenv.cfg",
        kept,
        "node_modules/a.md",
    ]


def test_explicit_file_is_taken_whatever_its_suffix(tmp_path: Path) -> None:
    plant(tmp_path, ".notes", "picture.png")
    given = (tmp_path / ".notes", tmp_path / "picture.png")
    assert names(tmp_path, *given) == [".notes", "picture.png"]


def test_circular_links_and_duplicates_are_read_once(tmp_path: Path) -> None:
    plant(tmp_path, "a/one.txt", "a/two.txt")
    (tmp_path / "a/loop").symlink_to(tmp_path)
    (tmp_path / "a/same.txt").symlink_to(tmp_path / "a/one.txt")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    assert names(tmp_path) == ["a/one.txt", "a/two.txt"]
    assert names(tmp_path, tmp_path / "a/two.txt", tmp_path, tmp_path / "a/one.txt") == [
        "a/two.txt",
        "a/one.txt",
    ]


def test_problems_are_reported_and_other_files_are_read(tmp_path: Path) -> None:
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
        ("binary.txt", "It contains binary data and no t"),
        ("broken.pdf", "It is not a PDF file, or it is d"),
        ("gone.txt", "It is a link to a file that does"),
        ("pipe.txt", "It is a device or a pipe, not a "),
        ("rows.jsonl", "Not JSON: Expecting value at col"),
        ("missing.txt", "There is no such file. Check the"),
    ]


def test_file_deleted_after_it_was_found_is_a_problem(tmp_path: Path) -> None:
    plant(tmp_path, "a.txt", "b.txt")
    reading = read_documents([tmp_path])
    assert isinstance(next(reading), ParsedDocument)
    (tmp_path / "b.txt").unlink()
    [problem] = reading
    assert isinstance(problem, Problem)
    assert problem.message == "It cannot be read: No such file or directory."


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


def test_file_without_read_permission_is_a_problem(closed_folder: Path) -> None:
    assert problems(closed_folder) == [
        ("closed.txt", "It cannot be read: Permission denied."),
        ("inner", "It cannot be read: Permission denied."),
    ]
    read = [d for d in read_documents([closed_folder]) if isinstance(d, ParsedDocument)]
    assert [Path(document.path).name for document in read] == ["open.txt"]


@pytest.mark.parametrize("error", [RecursionError("too deep"), ValueError("odd"), MemoryError()])
def test_failure_of_a_reader_is_a_problem_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(_: str) -> None:
        raise error

    monkeypatch.setattr(markdown, "read_markdown", fail)
    plant(tmp_path, "a.txt", "b.md", "c.txt")
    found = list(read_documents([tmp_path]))
    assert [type(each) for each in found] == [ParsedDocument, Problem, ParsedDocument]
    [(name, message)] = problems(tmp_path)
    assert name == "b.md"
    is_memory = isinstance(error, MemoryError)
    assert ("needs more memory" if is_memory else f"({type(error).__name__}: {error})") in message


def test_standard_input_is_returned_once() -> None:
    assert list(find_files(["-", "-"])) == [Path("-")]


def test_gzip_files_are_read_as_the_file_inside(tmp_path: Path) -> None:
    pages = {
        "ferry.1.gz": b".TH FERRY 1\n.SH DESCRIPTION\nIt sails daily.\n",
        "tides.md.gz": b"# Tides\n\nThe tide turns at noon.\n",
        "changes.Harbour.GZ": b"The pier was rebuilt in May.\n",
    }
    for name, content in pages.items():
        (tmp_path / name).write_bytes(gzip.compress(content))
    found = {Path(one.path).name: one for one in read_documents([tmp_path])}
    assert {name: one.kind for name, one in found.items() if isinstance(one, ParsedDocument)} == {
        "ferry.1.gz": "manpage",
        "tides.md.gz": "markdown",
        "changes.Harbour.GZ": "text",
    }
    page = found["tides.md.gz"]
    assert isinstance(page, ParsedDocument)
    assert ("sentence", "The tide turns at noon.") in shown(page)
    assert page.title == "Tides"
    raw = (tmp_path / "tides.md.gz").read_bytes()
    assert page.sha256 == hashlib.sha256(raw).hexdigest()


def test_gzip_files_of_binary_data_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "photo.png.gz").write_bytes(gzip.compress(b"any"))
    (tmp_path / "all.tar.gz").write_bytes(gzip.compress(b"any"))
    (tmp_path / "unknown.gz").write_bytes(gzip.compress(b"\0\1\2" * 99))
    (tmp_path / "broken.gz").write_bytes(b"no gzip data")
    assert list(read_documents([tmp_path])) == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (gzip.compress(b"The pier was rebuilt. " * 99)[:-20], "not a whole gzip file"),
        (b"no gzip data", "not a whole gzip file"),
        (gzip.compress(b"x" * 2_000_000), "at most 1,000,000 bytes"),
    ],
    ids=["cut off", "not packed", "too large"],  # the packed data has the time in it
)
def test_gzip_files_that_cannot_be_read(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "page.txt.gz"
    path.write_bytes(data)
    with pytest.raises(DataError, match=expected):
        read_document(path, max_bytes=1_000_000)
