"""
Read one data file: its lines or its JSON, and every problem in it.

Every reader in this package uses `DataFile`. It reads gzip (recognized by the first bytes, not by
the name), a byte-order mark and Windows line ends, and it collects the problems of all bad rows
with their lines. The functions `get_…` and `check_…` take values out of JSON objects; each raises
`RowError`, whose message becomes the problem of that row.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, BytesIO
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NoReturn, TypeVar, cast

from ..errors import DataError, InputError, Problem
from ..types import Question, QuestionSet

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "MAX_LINE_BYTES",
    "DataFile",
    "JsonObject",
    "RowError",
    "UniqueIds",
    "check_labels",
    "check_object",
    "check_text",
    "get_field",
    "get_integer",
    "get_list",
    "get_text",
    "get_texts",
    "json_type",
]

MAX_LINE_BYTES = 64 * 2**20
"""Longer lines are refused. The longest page of Natural Questions is far shorter."""

MAX_DOCUMENT_BYTES = 2**30
"""The limit, unpacked, for a file that is one JSON document, because it is held in memory."""

_STDIN = Path("-")
_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_JSON_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a boolean"),  # before int, because bool is a subclass of int
    ((int, float), "a number"),
    (str, "a string"),
    (list, "a list"),
    (dict, "an object"),
)

JsonObject = dict[str, object]
Row = TypeVar("Row")
Parsed = TypeVar("Parsed")


class RowError(Exception):
    """A problem of the current row. It does not leave the readers: `DataFile` collects it."""

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class UniqueIds:
    """The ids so far, each with the location of its first use."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._locations: dict[str, str] = {}

    def add(self, name: str, location: str) -> None:
        """Add an id, or raise RowError with the location that uses it already."""
        first = self._locations.setdefault(name, location)
        if first != location:
            raise RowError(
                f"The {self._what} id {name!r} is already used by {first}. Give each its own id."
            )


class DataFile:
    """
    Collects problems while the file is read; `question_set` or `check` raises them together.

    The path `-` is standard input.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path).expanduser()
        self._problems: list[Problem] = []

    def add_problem(self, line: int, message: str) -> None:
        """Record a bad row. Line 0 stands for the whole file."""
        name = "standard input" if self.path == _STDIN else str(self.path)
        self._problems.append(Problem(name, line, message))

    def fail(self, line: int, message: str) -> NoReturn:
        """Record a problem that makes the rest unreadable, and raise."""
        self.add_problem(line, message)
        self.check()
        raise AssertionError("check() raises")  # pragma: no cover

    def check(self) -> None:
        """Raise the recorded problems, sorted by line."""
        if self._problems:
            raise DataError(sorted(self._problems, key=lambda problem: problem.line))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Line numbers from 1, and lines without line ends; undecodable lines are problems."""
        offset = 0
        with self._open() as stream:
            for number, raw in enumerate(
                iter(partial(stream.readline, MAX_LINE_BYTES + 1), b""), 1
            ):
                start, offset = offset, offset + len(raw)
                if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    offset += _skip_line(stream)
                    self.add_problem(number, _too_long("line", offset - start, MAX_LINE_BYTES))
                    continue
                try:
                    text = _decode(raw, start)
                except RowError as error:
                    self.add_problem(number, str(error))
                else:
                    yield number, text.rstrip("\r\n")

    def records(self) -> Iterator[tuple[int, JsonObject]]:
        """Line number and JSON object of every line that is not blank."""
        for number, line in self.lines():
            if not line.strip():
                continue
            try:
                record = check_object(_parse_json(line), "The line")
            except RowError as error:
                self.add_problem(number, str(error))
            else:
                yield number, record

    def document(self) -> object:
        """The file as one JSON value; raises if it is not valid JSON."""
        raw = b""
        with self._open() as stream:
            raw = stream.read(MAX_DOCUMENT_BYTES + 1)
        self.check()
        if len(raw) > MAX_DOCUMENT_BYTES:
            self.fail(0, _too_long("file", len(raw), MAX_DOCUMENT_BYTES))
        if not raw.strip():
            self.fail(0, "The file is empty. Put the file of the dataset there.")
        try:
            return _parse_json(_decode(raw))
        except RowError as error:
            self.fail(error.line, str(error))

    def parse_rows(
        self, rows: Iterable[tuple[int, Row]], parse: Callable[[int, Row], Parsed | None]
    ) -> list[Parsed]:
        """`parse(line, row)` of every row; a `RowError` is a problem, None skips the row."""
        found: list[Parsed] = []
        for line, row in rows:
            try:
                parsed = parse(line, row)
            except RowError as error:
                self.add_problem(line, str(error))
            else:
                if parsed is not None:
                    found.append(parsed)
        return found

    def parse_items(
        self, items: Sequence[object], path: str, parse: Callable[[JsonObject, str, int], Parsed]
    ) -> list[Parsed]:
        """
        `parse(object, path, index)` of every object in a list inside a JSON document.

        JSON values have no line, so problems name their JSON path: `data[3].paragraphs[0]`.
        """
        found: list[Parsed] = []
        for index, item in enumerate(items):
            item_path = f"{path}[{index}]"
            try:
                found.append(parse(check_object(item, "The entry"), item_path, index))
            except RowError as error:
                self.add_problem(0, f"{item_path}: {error}")
        return found

    def question_set(self, name: str | None, questions: Sequence[Question]) -> QuestionSet:
        """The last step of every reader: raise all problems, or return the set."""
        if not questions and not self._problems:
            self.add_problem(0, "The file has no questions. Check that it is the right file.")
        self.check()
        return QuestionSet(name or self.path.name, tuple(questions))

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self.path.is_dir():
            raise InputError(f"Expected a file, got the folder {self.path}. Name a file in it.")
        try:
            with self._raw() as raw:
                if raw.peek(2)[:2] != _GZIP:
                    yield raw
                else:
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield cast(BinaryIO, unpacked)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self.add_problem(0, f"The gzip data is damaged or truncated ({error}). Get it again.")
        except FileNotFoundError:
            raise InputError(f"No file {self.path}. Check the path.") from None
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}.") from error

    def _raw(self) -> BufferedReader:
        if self.path == _STDIN:
            # Read whole, so that closing this reader leaves the program's own stream open.
            return BufferedReader(BytesIO(sys.stdin.buffer.read()))
        return self.path.open("rb")


def _decode(raw: bytes, offset: int = 0) -> str:
    """`offset` is the position of these bytes in the file; a byte-order mark at 0 is dropped."""
    if offset == 0 and raw.startswith(_BOM):
        raw, offset = raw[len(_BOM) :], len(_BOM)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"Byte 0x{raw[error.start]:02x} at offset {offset + error.start} is not UTF-8."
        line = raw.count(b"\n", 0, error.start) + 1
        raise RowError(f"{message} Save the file as UTF-8.", line=line) from error


def _skip_line(stream: BinaryIO) -> int:
    """Read to the end of the line in chunks; returns the number of bytes."""
    skipped = 0
    while chunk := stream.readline(2**20):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return skipped


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise RowError(
            f"Not JSON: {error.msg} at column {error.colno}. Write the file with a JSON library.",
            line=error.lineno,
        ) from error
    except (ValueError, RecursionError) as error:  # a number with too many digits; deep nesting
        raise RowError(f"JSON that cannot be read: {error}. Check how it was written.") from error


def _too_long(what: str, size: int, limit: int) -> str:
    return (
        f"A {what} may have at most {limit:,} bytes, got {size:,} or more. "
        "Split it, or check its line ends."
    )


def json_type(value: object) -> str:
    """The type of a JSON value, for messages."""
    return next((word for types, word in _JSON_TYPES if isinstance(value, types)), "null")


def check_object(value: object, what: str) -> JsonObject:
    """The value, if it is a JSON object."""
    if not isinstance(value, dict):
        raise RowError(f"{what} must be a JSON object {{…}}, got {json_type(value)}.")
    return value


def check_text(value: object, what: str, *, blank: bool = False) -> str:
    """The value, if it is a string that UTF-8 can encode and, unless `blank`, not blank."""
    if not isinstance(value, str):
        raise RowError(f"{what} must be a string, got {json_type(value)}.")
    if not blank and not value.strip():
        raise RowError(f"{what} is empty. Fill it in, or remove it.")
    if not value.isascii() and not value.isprintable():
        _check_surrogates(value, what)
    return value


def get_field(record: JsonObject, key: str) -> object:
    """The value of a required field."""
    try:
        return record[key]
    except KeyError:
        found = f", only {', '.join(map(repr, record))}" if record else ": the object is empty"
        raise RowError(f"No {key!r}{found:.200}. Add it to the row.") from None


def get_text(record: JsonObject, key: str) -> str:
    """The value of a required field, if it is a string that is not blank."""
    return check_text(get_field(record, key), repr(key))


def get_integer(record: JsonObject, key: str) -> int:
    """The value of a required field, if it is an integer."""
    value = get_field(record, key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RowError(f"{key!r} must be an integer, got {json_type(value)}.")
    return value


def get_list(record: JsonObject, key: str) -> list[object]:
    """The value of a required field, if it is a list; it may be empty."""
    value = get_field(record, key)
    if not isinstance(value, list):
        raise RowError(f"{key!r} must be a list, got {json_type(value)}.")
    return value


def get_texts(record: JsonObject, key: str, *, blank: bool = False) -> list[str]:
    """The value of a required field, if it is a list of at least one string."""
    values = get_list(record, key)
    if not values:
        raise RowError(f"{key!r} is an empty list. Add an entry, or remove the row.")
    return [
        check_text(value, f"{key!r}[{place}]", blank=blank) for place, value in enumerate(values)
    ]


def check_labels(values: Iterable[object], count: int, what: str = "'labels'") -> Sequence[bool]:
    """The labels as booleans, if there are `count` of them and each is 0, 1, false or true."""
    found = list(values)
    if len(found) != count:
        raise RowError(f"{what} must have one label per candidate ({count}), got {len(found)}.")
    for place, value in enumerate(found):
        if not isinstance(value, int) or value not in (0, 1):
            raise RowError(f"{what}[{place}] must be 0 or 1, got {value!r:.40}.")
    return [value == 1 for value in found]


def _check_surrogates(value: str, what: str) -> None:
    """JSON can contain half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowError(
            f"{what} has half of a surrogate pair at position {error.start}. Write the file again."
        ) from error
