"""
Read published word vectors: word2vec, GloVe and Numberbatch files, gzipped or not.

A text file has one line per word, the word and its numbers, and may begin with a line of two
numbers: the number of words and of dimensions. GloVe has words with spaces: the numbers are the
last fields. Numberbatch writes `/c/en/word`: words of other languages are skipped. A `.bin` file is
in word2vec's binary format.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, Problem
from ..text.words import normalize
from .word_vectors import UnknownRule, WordVectors, rarity_by_rank

__all__ = [
    "read_vectors",
]

_MAX_WORD_BYTES = 1_000

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
    Read the vectors of all words in a file, or of those in `vocabulary`.

    Words are normalized. If several words have one normal form, the word that is written in that
    form is used, otherwise the first. `cache` is a folder for a converted copy of the file, which
    is memory-mapped from the second call on. If lines are malformed, DataError reports all of them.
    """
    file = Path(path).expanduser()
    if cache is None:
        collected = _read_file(file, language, vocabulary)
        rarity = _rarity(list(collected.forms), collected.rows)
        words, rows = collected.result()
    else:
        words, rows = _read_cached(
            file, Path(cache).expanduser(), lambda: _read_file(file, language).result(), language
        )
        rarity = _rarity(words, words)
    found = WordVectors.from_rows(words, rows, rarity=rarity, unknown=unknown, name=file.name)
    if cache is None or vocabulary is None:
        return found
    part = replace(found.restricted(vocabulary), name=file.name)
    return part if len(part) else _no_words(file)


def _rarity(words: list[str], kept: Iterable[str]) -> NDArray[np.float32]:
    """The rarity of the kept words, by their rank among all words of the file."""
    if len(words) > 1 and words == sorted(words):  # sorted by name, not by frequency
        return np.ones(sum(1 for _ in kept), np.float32)
    rank = {word: row for row, word in enumerate(words)}
    return rarity_by_rank(len(words))[[rank[word] for word in kept]]


@dataclass(slots=True)
class _Collected:
    """The rows read so far, one per normal form."""

    language: str
    vocabulary: Collection[str] | None
    forms: dict[str, None] = field(default_factory=dict)
    """The normal forms of all words, also outside the vocabulary, in order of appearance."""
    rows: dict[str, _Row] = field(default_factory=dict)
    as_written: set[str] = field(default_factory=set)

    def add(self, written: str, row: _Row) -> None:
        """Keep the row if its form has none yet, or only one of a word written differently."""
        word = self._in_language(written)
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

    def _in_language(self, written: str) -> str | None:
        if not written.startswith("/c/"):
            return written
        _, _, language, *rest = written.split("/")
        return "/".join(rest) if language == self.language else None

    def result(self) -> tuple[list[str], _Row]:
        """The words in order of appearance, and their rows."""
        rows = np.stack(list(self.rows.values())) if self.rows else np.zeros((0, 1), np.float32)
        return list(self.rows), rows


def _read_file(file: Path, language: str, vocabulary: Collection[str] | None = None) -> _Collected:
    collected = _Collected(language, None if vocabulary is None else frozenset(vocabulary))
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    try:
        with _open(file) as stream:
            read_rows = _read_binary if suffixes[-1:] == [".bin"] else _read_text
            for word, row in read_rows(stream, str(file)):
                collected.add(word, row)
    except (OSError, EOFError) as error:
        raise DataError([Problem(str(file), 0, f"cannot be read: {error}")]) from error
    return collected if collected.rows else _no_words(file)


def _no_words(file: Path) -> NoReturn:
    raise DataError([Problem(str(file), 0, "has none of the words in the vocabulary.")])


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


def _read_cached(
    file: Path, folder: Path, read: Callable[[], tuple[list[str], _Row]], language: str
) -> tuple[list[str], _Row]:
    """
    The result of `read`, stored in the folder for the next call.

    An entry is identified by the file's full path, size and time of modification, so a changed file
    is read again. Entries are never removed.
    """
    entry = folder / f"{file.name}-{_file_id(file, language)}"
    if not entry.is_dir():
        _store(entry, *read())
    words = (entry / "words.txt").read_text(encoding="utf-8").split("\n")
    return words, np.load(entry / "rows.npy", mmap_mode="r", allow_pickle=False)


def _file_id(file: Path, language: str) -> str:
    state = file.stat() if file.exists() else None
    parts = [str(file.resolve()), language]
    if state is not None:
        parts += [str(state.st_size), str(state.st_mtime_ns)]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _store(entry: Path, words: list[str], rows: _Row) -> None:
    """Write a temporary folder and rename it: of two processes, the first one wins."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=entry.parent, prefix=".draft-"))
    try:
        (draft / "words.txt").write_text("\n".join(words), encoding="utf-8")
        np.save(draft / "rows.npy", rows, allow_pickle=False)
        draft.rename(entry)
    except OSError:
        if not entry.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
