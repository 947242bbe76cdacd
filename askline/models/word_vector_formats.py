"""
Read published word vectors: word2vec, GloVe and Numberbatch files, gzipped or not.

A text file has one line per word, the word and its numbers, and may begin with a line of two
numbers: the number of words and of dimensions. GloVe has words with spaces: the numbers are the
last fields. Numberbatch writes `/c/en/word`: words of other languages are skipped. A `.bin` file is
in word2vec's binary format.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, Problem
from ..text.words import normalize
from .word_vectors import WordVectors

__all__ = [
    "read_vectors",
]

_MAX_WORD_BYTES = 1_000

_Row = NDArray[np.float32]


def read_vectors(path: str | PathLike[str]) -> WordVectors:
    """
    Read the vectors of all words in a file.

    Words are normalized. If several words have one normal form, the word that is written in that
    form is used, otherwise the first. If lines are malformed, DataError reports all of them.
    """
    file = Path(path).expanduser()
    words, rows = _read_file(file)
    rarity = None
    if len(words) > 1 and words == sorted(words):  # sorted by name, not by frequency
        rarity = np.ones(len(words), np.float32)
    return WordVectors.from_rows(words, rows, rarity=rarity, name=file.name)


@dataclass(slots=True)
class _Collected:
    """The rows read so far, one per normal form."""

    rows: dict[str, _Row] = field(default_factory=dict)
    as_written: set[str] = field(default_factory=set)

    def add(self, written: str, row: _Row) -> None:
        """Keep the row if its form has none yet, or only one of a word written differently."""
        word = written
        if written.startswith("/c/"):
            _, _, language, *rest = written.split("/")
            if language != "en":
                return
            word = "/".join(rest)
        form = normalize(word)
        if form not in self.rows or (form == word and form not in self.as_written):
            self.rows[form] = row
        if form == word:
            self.as_written.add(form)


def _read_file(file: Path) -> tuple[list[str], _Row]:
    """The words in order of appearance, and their rows."""
    collected = _Collected()
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    try:
        with _open(file) as stream:
            read_rows = _read_binary if suffixes[-1:] == [".bin"] else _read_text
            for word, row in read_rows(stream, str(file)):
                collected.add(word, row)
    except (OSError, EOFError) as error:
        raise DataError([Problem(str(file), 0, f"cannot be read: {error}")]) from error
    if not collected.rows:
        message = "has no words. Of a Numberbatch file, only the English words are read."
        raise DataError([Problem(str(file), 0, message)])
    return list(collected.rows), np.stack(list(collected.rows.values()))


def _open(file: Path) -> IO[bytes]:
    if file.suffix == ".gz":
        return gzip.open(file)  # type: ignore[return-value]
    return file.open("rb")


def _read_text(stream: IO[bytes], path: str) -> Iterator[tuple[str, _Row]]:
    """Yield words and rows; after the last line, raise all problems at once."""
    length = expected = number = 0
    problems: list[Problem] = []
    for number, line in enumerate(stream, start=1):
        fields = line.rstrip(b"\r\n ").split(b" ")
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            expected, length = map(int, fields)  # the header
            continue
        length = length or len(fields) - 1
        row = _parse_numbers(fields[-length:]) if len(fields) > length > 0 else None
        if row is None:
            content = f"a word and {length} finite numbers" if length else "a word and its numbers"
            problems.append(Problem(path, number, f"must be {content}, got {_shown(line)}."))
        elif not problems:
            yield b" ".join(fields[:-length]).decode("utf-8", "replace"), row
    if expected and number <= expected:
        message = f"must have {expected} words by its header, got {number - 1}. Is it complete?"
        problems.append(Problem(path, 0, message))
    if problems:
        raise DataError(problems)


def _parse_numbers(fields: list[bytes]) -> _Row | None:
    try:
        row = np.array(fields, np.float32)
    except ValueError:
        return None
    return row if np.isfinite(row).all() else None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _read_binary(stream: IO[bytes], path: str) -> Iterator[tuple[str, _Row]]:
    """A header `count length`, then per word: the word, a space, little-endian float32 numbers."""
    header = stream.readline(100).split()
    if len(header) != 2 or not all(part.isdigit() for part in header):
        message = "must begin with the number of words and of dimensions."
        raise DataError([Problem(path, 1, message)])
    count, length = map(int, header)
    for number in range(count):
        word = _read_word(stream)
        numbers = stream.read(4 * length)
        row = np.frombuffer(numbers, "<f4") if len(numbers) == 4 * length else None
        if word is None or row is None or not np.isfinite(row).all():
            message = f"word {number + 1} of {count} must be followed by {length} finite numbers."
            raise DataError([Problem(path, 0, message)])
        yield word, np.asarray(row, np.float32)


def _read_word(stream: IO[bytes]) -> str | None:
    """Read up to the next space; some writers put a line break first. None at the end."""
    characters = bytearray()
    while (character := stream.read(1)) != b" ":
        if not character or len(characters) > _MAX_WORD_BYTES:
            return None
        characters += character
    return characters.lstrip(b"\n").decode("utf-8", "replace")
