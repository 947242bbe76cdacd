"""
Word vectors as others publish them: word2vec, GloVe and Numberbatch files, packed or not.

A text file has a line a word, the word and its numbers, and may begin with a line of two numbers,
how many words and how long. GloVe has words with spaces in them: the numbers are the last fields.
Numberbatch writes `/c/en/word`: the other languages are passed over. A binary file (.bin) is
word2vec's.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, Problem
from ..text.words import normalize
from .word_vectors import UnknownRule, WordVectors, rarity_by_rank, read_cached

__all__ = [
    "read_vectors",
]

_Row = NDArray[np.float32]


def read_vectors(
    path: str | PathLike[str],
    *,
    vocabulary: Collection[str] | None = None,
    language: str = "en",
    unknown: UnknownRule = "hashed",
    cache: str | PathLike[str] | None = None,
) -> WordVectors:
    """
    The vectors of a file, for all its words or for those of the vocabulary that it has.

    Words are brought to their normal form; of several with one form the one that is written so
    counts, else the first. `cache` names a folder that keeps the whole file in a form which is
    memory-mapped from the second time on. Every malformed line is reported, and nothing returned.
    """
    file = Path(path).expanduser()
    if cache is None:
        collected = _read(file, language, vocabulary)
        rarity = _rarity(list(collected.forms), collected.rows)
        words, rows = collected.result()
    else:
        words, rows = read_cached(
            file, Path(cache).expanduser(), lambda: _read(file, language).result(), language
        )
        rarity = _rarity(words, words)
    found = WordVectors.from_rows(words, rows, rarity=rarity, unknown=unknown, name=file.name)
    if cache is None or vocabulary is None:
        return found
    part = replace(found.restricted(vocabulary), name=file.name)
    return part if len(part) else _nothing(file)


def _rarity(words: list[str], kept: Iterable[str]) -> NDArray[np.float32]:
    """Of the words kept, by their place among all the file's: the same whichever are kept."""
    if len(words) > 1 and words == sorted(words):  # then the order says nothing of how common
        return np.ones(sum(1 for _ in kept), np.float32)
    place = {word: row for row, word in enumerate(words)}
    return rarity_by_rank(len(words))[[place[word] for word in kept]]


@dataclass(slots=True)
class _Collected:
    """The rows wanted so far, one for each normal form."""

    language: str
    vocabulary: Collection[str] | None
    forms: dict[str, None] = field(default_factory=dict)
    """Of all words, wanted or not, in the order first met."""
    rows: dict[str, _Row] = field(default_factory=dict)
    as_written: set[str] = field(default_factory=set)

    def add(self, written: str, row: _Row) -> None:
        """Keep the row if its word is wanted and has none, or none that is written so."""
        word = self._own(written)
        if word is None:
            return
        form = normalize(word)
        self.forms.setdefault(form)
        if self.vocabulary is not None and form not in self.vocabulary:
            return
        if form not in self.rows or (form == word and form not in self.as_written):
            self.rows[form] = row
        if form == word:
            self.as_written.add(form)

    def _own(self, written: str) -> str | None:
        if not written.startswith("/c/"):
            return written
        _, _, language, *rest = written.split("/")
        return "/".join(rest) if language == self.language else None

    def result(self) -> tuple[list[str], _Row]:
        """The words in the order first met, and their rows."""
        rows = np.stack(list(self.rows.values())) if self.rows else np.zeros((0, 1), np.float32)
        return list(self.rows), rows


def _read(file: Path, language: str, vocabulary: Collection[str] | None = None) -> _Collected:
    collected = _Collected(language, None if vocabulary is None else frozenset(vocabulary))
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    try:
        with _open(file) as stream:
            rows = _binary if suffixes[-1:] == [".bin"] else _text
            for word, row in rows(stream, str(file)):
                collected.add(word, row)
    except (OSError, EOFError) as error:
        raise DataError([Problem(str(file), 0, f"cannot be read: {error}")]) from error
    return collected if collected.rows else _nothing(file)


def _nothing(file: Path) -> NoReturn:
    raise DataError([Problem(str(file), 0, "has none of the words asked for.")])


def _open(file: Path) -> IO[bytes]:
    if file.suffix == ".gz":
        return gzip.open(file)  # type: ignore[return-value]
    return file.open("rb")


def _text(stream: IO[bytes], path: str) -> Iterator[tuple[str, _Row]]:
    """Words and rows; after the last line, all problems at once."""
    length = promised = number = 0
    problems: list[Problem] = []
    for number, line in enumerate(stream, start=1):
        fields = line.rstrip(b"\r\n ").split(b" ")
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            promised, length = map(int, fields)  # the heading
            continue
        length = length or len(fields) - 1
        row = _numbers(fields[-length:]) if len(fields) > length > 0 else None
        if row is None:
            wanted = f"a word and {length} finite numbers" if length else "a word and its numbers"
            problems.append(Problem(path, number, f"must be {wanted}, got {_shown(line)}."))
        elif not problems:
            yield b" ".join(fields[:-length]).decode("utf-8", "replace"), row
    if promised and number <= promised:
        message = f"begins with {promised} as the count of words and has {number - 1}: is it whole?"
        problems.append(Problem(path, 0, message))
    if problems:
        raise DataError(problems)


def _numbers(fields: list[bytes]) -> _Row | None:
    try:
        row = np.array(fields, np.float32)
    except ValueError:
        return None
    return row if np.isfinite(row).all() else None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _binary(stream: IO[bytes], path: str) -> Iterator[tuple[str, _Row]]:
    """`count length`, then each word, a space, and its numbers in little-endian float32."""
    heading = stream.readline(100).split()
    if len(heading) != 2 or not all(part.isdigit() for part in heading):
        message = "must begin with the count of words and the length of a vector."
        raise DataError([Problem(path, 1, message)])
    count, length = map(int, heading)
    for number in range(count):
        word = _word(stream)
        numbers = stream.read(4 * length)
        row = np.frombuffer(numbers, "<f4") if len(numbers) == 4 * length else None
        if word is None or row is None or not np.isfinite(row).all():
            message = f"word {number + 1} of {count} must be followed by {length} finite numbers."
            raise DataError([Problem(path, 0, message)])
        yield word, np.asarray(row, np.float32)


def _word(stream: IO[bytes]) -> str | None:
    """Up to the next space; some writers put a line break before it. None at the end."""
    letters = bytearray()
    while (letter := stream.read(1)) != b" ":
        if not letter or len(letters) > 1_000:
            return None
        letters += letter
    return letters.lstrip(b"\n").decode("utf-8", "replace")
