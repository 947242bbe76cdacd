from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from askline.data import data_files as files
from askline.data import read_selqa
from askline.data.data_files import DataFile
from askline.data.jsonl_questions import read_jsonl
from askline.errors import InputError

from .samples import problems, write

GOOD = '{"question": "Who?", "candidates": ["Nobody.", "Ann."], "labels": [0, 1]}'


@pytest.mark.parametrize(
    "content",
    [
        b"one\ntwo\n",
        b"one\r\ntwo\r\n",
        b"one\ntwo",
        b"\xef\xbb\xbfone\ntwo\n",
        gzip.compress(b"one\ntwo\n"),
        gzip.compress(b"\xef\xbb\xbfone\r\ntwo"),
    ],
    ids=["plain", "windows", "no-last-newline", "bom", "gzip", "gzip-bom-windows"],
)
def test_lines_are_decoded_and_numbered(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    assert list(DataFile(path).lines()) == [(1, "one"), (2, "two")]


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    path = write(tmp_path / "file.txt", "a\u2028b\x0cc\x85d")
    assert list(DataFile(path).lines()) == [(1, "a\u2028b\x0cc\x85d")]


def test_line_that_is_not_utf8_is_reported_with_its_byte(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(f"{GOOD}\n".encode() + b'{"question": "caf\xe9"}\n' + b"\xff\n")
    offset = len(GOOD) + 1 + len(b'{"question": "caf')
    assert problems(read_jsonl, path) == [
        (2, f"Byte 0xe9 at offset {offset} is not UTF-8. Save the file as UTF-8."),
        (3, f"Byte 0xff at offset {offset + 4} is not UTF-8. Save the file as UTF-8."),
    ]


def test_document_that_is_not_utf8_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "selqa.json"
    path.write_bytes(b'\xef\xbb\xbf[\n\n"caf\xe9"]')
    assert problems(read_selqa, path) == [
        (3, "Byte 0xe9 at offset 10 is not UTF-8. Save the file as UTF-8.")
    ]


@pytest.mark.parametrize("content", [b"", b"\n \n", gzip.compress(b"")], ids=["0", "blank", "gzip"])
def test_empty_file_is_a_problem(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty"
    path.write_bytes(content)
    [(line, message)] = problems(read_jsonl, path)
    assert (line, message[:26]) == (0, "The file has no questions.")
    [(line, message)] = problems(read_selqa, path)
    assert (line, message[:18]) == (0, "The file is empty.")


@pytest.mark.parametrize("read", [read_jsonl, read_selqa])
def test_truncated_gzip_file_returns_nothing(tmp_path: Path, read: object) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(f"{GOOD}\n".encode() * 50)[:-9])
    assert callable(read)
    [(line, message)] = problems(read, path)
    assert line == 0
    assert message.startswith("The gzip data is damaged or truncated")
    assert message.endswith("Get it again.")


def test_damaged_gzip_file_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "bad.gz"
    path.write_bytes(b"\x1f\x8bnot really gzip")
    [(line, message)] = problems(read_jsonl, path)
    assert line == 0
    assert "damaged or truncated" in message


def test_folder_and_missing_file_have_different_messages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"got the folder .*\. Name a file in it"):
        read_jsonl(tmp_path)
    with pytest.raises(InputError, match=r"No file .*missing\.jsonl\. Check the path\."):
        read_jsonl(tmp_path / "missing.jsonl")


def test_line_of_ten_megabytes_is_read(tmp_path: Path) -> None:
    long = "word " * 2_000_000
    row = json.dumps({"question": "Who?", "candidates": [long], "labels": [1]})
    [question] = read_jsonl(write(tmp_path / "q.jsonl", row))
    assert question.texts == [long]


def test_line_over_the_limit_is_refused_and_the_rest_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100)
    path = write(tmp_path / "q.jsonl", GOOD, "x" * 5000, GOOD, "{")
    (first, message), (second, _) = problems(read_jsonl, path)
    assert (first, second) == (2, 4)
    assert message.startswith("A line may have at most 100 bytes, got 5,001 or more. Split it")


def test_document_over_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_DOCUMENT_BYTES", 10)
    [(line, message)] = problems(read_selqa, write(tmp_path / "d.json", "[1, 2, 3, 4, 5]"))
    assert (line, message[:12]) == (0, "A file may h")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", r"Not JSON: Expecting property name enclosed in double quotes at column 2."),
        ("[1]", "The line must be a JSON object {…}, got a list."),
        ("null", "The line must be a JSON object {…}, got null."),
        ("[" * 200_000, "JSON that cannot be read: "),
        ("9" * 5_000, "JSON that cannot be read: "),
    ],
    ids=["broken", "list", "null", "deep", "long-number"],
)
def test_line_that_is_not_a_json_object_is_a_problem(
    tmp_path: Path, row: str, message: str
) -> None:
    [(line, found)] = problems(read_jsonl, write(tmp_path / "q.jsonl", GOOD, "", row))
    assert line == 3
    assert found.startswith(message)
