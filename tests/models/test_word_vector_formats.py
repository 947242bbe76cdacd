from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from askline.errors import DataError
from askline.models.word_vector_formats import read_vectors

GLOVE = "the 0.1 0.2\nsea 1 -2\nat sea 3 4\n"
WORD2VEC = "3 2\n" + GLOVE
NUMBERBATCH = "3 2\n/c/de/meer 9 9\n/c/en/at_sea 3 4\n/c/en/sea 1 -2\n"


def _binary(*, line_breaks: bool = False) -> bytes:
    rows = {"the": (0.1, 0.2), "sea": (1, -2)}
    end = b"\n" if line_breaks else b""
    body = b"".join(
        word.encode() + b" " + np.array(row, "<f4").tobytes() + end for word, row in rows.items()
    )
    return b"2 2\n" + body


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("glove.txt", GLOVE.encode()),
        ("word2vec.vec", WORD2VEC.encode()),
        ("numberbatch.txt", NUMBERBATCH.encode()),
        ("windows.txt", GLOVE.replace("\n", " \r\n").encode()),
        ("word2vec.bin", _binary()),
        ("lines.bin", _binary(line_breaks=True)),
        ("glove.txt.gz", gzip.compress(GLOVE.encode(), mtime=0)),
        ("word2vec.bin.gz", gzip.compress(_binary(), mtime=0)),
    ],
)
def test_every_format_gives_the_same_vectors(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    vectors = read_vectors(tmp_path / name)
    assert np.array_equal(vectors.of(["sea"]), [[1, -2]])
    assert vectors.dimensions == 2
    assert vectors.name == name


def test_words_with_spaces_and_other_languages(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text(GLOVE, encoding="utf-8")
    assert read_vectors(tmp_path / "glove.txt").words == ("the", "sea", "at sea")
    (tmp_path / "nb.txt").write_text(NUMBERBATCH, encoding="utf-8")
    assert read_vectors(tmp_path / "nb.txt").words == ("at_sea", "sea")
    (tmp_path / "de.txt").write_text("/c/de/meer 9 9\n", encoding="utf-8")
    with pytest.raises(DataError, match="only the English words are read"):
        read_vectors(tmp_path / "de.txt")


def test_an_alphabetical_file_gives_no_rarities(tmp_path: Path) -> None:
    (tmp_path / "nb.txt").write_text(NUMBERBATCH, encoding="utf-8")
    assert read_vectors(tmp_path / "nb.txt").idf(["at_sea", "sea"]).tolist() == [1, 1]


def test_a_word_in_its_normal_form_wins(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("Sea 1 1\nsea 2 2\nSEA 3 3\nIsle 4 4\n", encoding="utf-8")
    vectors = read_vectors(tmp_path / "v.txt")
    assert vectors.of(["sea", "isle"]).tolist() == [[2, 2], [4, 4]]


def test_every_malformed_line_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("the 1 2\nsea 1\nisle 1 x\nfog 1 nan\nfar 1 2\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_vectors(path)
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4]
    assert "must be a word and 2 finite numbers, got 'isle 1 x'" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.bin", b"not a heading at all\n", "must begin with the number of words"),
        ("v.bin", _binary()[:-3], "word 2 of 2 must be followed by 2 finite numbers"),
        ("v.bin", b"2 2\nthe", "word 1 of 2"),
        ("v.txt.gz", gzip.compress(GLOVE.encode(), mtime=0)[:-9], "cannot be read"),
        ("v.txt", b"3 2\nthe 1 2\nsea 1 2\n", "must have 3 words by its header, got 2"),
        ("v.txt", b"3 2\n", "must have 3 words by its header, got 0"),
    ],
    ids=["heading", "numbers cut short", "word cut short", "gzip cut short", "lines", "all lines"],
)
def test_damaged_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / name)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"v\.txt: cannot be read"):
        read_vectors(tmp_path / "v.txt")
