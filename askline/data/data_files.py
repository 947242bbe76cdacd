"""
Taking values out of JSON objects, with a clear word where one is missing or of the wrong kind.

Each function raises `RowError`, whose message becomes the problem of that row.

One data file while it is read: its lines or its JSON, and everything that is wrong with it.

Every reader of this room goes through `DataFile`, so all of them take gzip (told by its first
bytes, not by the name), a byte-order mark and Windows line ends, and all of them report every bad
row with its line before anything is handed on.
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

JsonObject = dict[str, object]

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),  # before int, of which bool is a kind
    ((int, float), "a number"),
    (str, "a text"),
    (list, "a list"),
    (dict, "an object"),
)


class RowError(Exception):
    """What is wrong with the row at hand. It never leaves the readers: `DataFile` collects it."""

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class UniqueIds:
    """Ids seen so far, each with the place of its first use."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._places: dict[str, str] = {}

    def take(self, name: str, place: str) -> None:
        """Claim an id, or say who has it."""
        first = self._places.setdefault(name, place)
        if first != place:
            raise RowError(
                f"The {self._what} id {name!r} is taken by {first}. Give each its own id."
            )


def json_type(value: object) -> str:
    """A JSON value's kind in plain words."""
    return next((word for types, word in _KINDS if isinstance(value, types)), "null")


def check_object(value: object, what: str) -> JsonObject:
    """A JSON object."""
    if not isinstance(value, dict):
        raise RowError(f"{what} must be a JSON object {{…}}, got {json_type(value)}.")
    return value


def check_text(value: object, what: str, *, blank: bool = False) -> str:
    """A text of whole characters; one without any only where `blank` allows it."""
    if not isinstance(value, str):
        raise RowError(f"{what} must be a text, got {json_type(value)}.")
    if not blank and not value.strip():
        raise RowError(f"{what} is empty. Fill it in, or remove it.")
    if not value.isascii() and not value.isprintable():
        _check_surrogates(value, what)
    return value


def get_field(record: JsonObject, key: str) -> object:
    """The value under a key that must be there."""
    try:
        return record[key]
    except KeyError:
        found = f", only {', '.join(map(repr, record))}" if record else ": the object is empty"
        raise RowError(f"No {key!r}{found:.200}. Add it to the row.") from None


def get_text(record: JsonObject, key: str) -> str:
    """A text that is not blank."""
    return check_text(get_field(record, key), repr(key))


def get_integer(record: JsonObject, key: str) -> int:
    """A whole number."""
    value = get_field(record, key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RowError(f"{key!r} must be a whole number, got {json_type(value)}.")
    return value


def get_list(record: JsonObject, key: str) -> list[object]:
    """A list, which may be empty."""
    value = get_field(record, key)
    if not isinstance(value, list):
        raise RowError(f"{key!r} must be a list, got {json_type(value)}.")
    return value


def get_texts(record: JsonObject, key: str, *, blank: bool = False) -> list[str]:
    """A list of at least one text."""
    values = get_list(record, key)
    if not values:
        raise RowError(f"{key!r} has no entries. Give at least one, or remove the row.")
    return [
        check_text(value, f"{key!r}[{place}]", blank=blank) for place, value in enumerate(values)
    ]


def check_labels(values: Iterable[object], count: int, what: str = "'labels'") -> Sequence[bool]:
    """As many labels as there are candidates, each 0 or 1 (false and true will do)."""
    found = list(values)
    if len(found) != count:
        raise RowError(
            f"{what} has {len(found)} entries for {count} candidates. Give one label for each."
        )
    for place, value in enumerate(found):
        if not isinstance(value, int) or value not in (0, 1):
            raise RowError(f"{what}[{place}] must be 0 or 1, got {value!r:.40}.")
    return [value == 1 for value in found]


def _check_surrogates(value: str, what: str) -> None:
    """JSON can spell one half of a surrogate pair, which no UTF-8 file can hold."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowError(
            f"{what} holds half a character at position {error.start}. Write the file anew."
        ) from error


MAX_LINE_BYTES = 64 * 2**20
"""Bytes in one line, far above the longest page of Natural Questions; longer ones are refused."""

MAX_DOCUMENT_BYTES = 2**30
"""Bytes, unpacked, of a file that is one JSON document, for it must fit into memory whole."""

_STDIN = Path("-")
_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"

Row = TypeVar("Row")
Parsed = TypeVar("Parsed")


class DataFile:
    """
    Problems gather while the file is read; `question_set` or `check` raises them all at once.

    The path `-` is standard input.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path).expanduser()
        self._problems: list[Problem] = []

    def problem(self, line: int, message: str) -> None:
        """Note one bad row. Line 0 stands for the file as a whole."""
        name = "standard input" if self.path == _STDIN else str(self.path)
        self._problems.append(Problem(name, line, message))

    def fail(self, line: int, message: str) -> NoReturn:
        """Note a problem that leaves nothing to read on, and raise."""
        self.problem(line, message)
        self.check()
        raise AssertionError("a noted problem is raised")  # pragma: no cover

    def check(self) -> None:
        """Raise what was noted, in the order of the lines."""
        if self._problems:
            raise DataError(sorted(self._problems, key=lambda problem: problem.line))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Line numbers from 1 and texts without line ends; broken lines are noted and left out."""
        offset = 0
        with self._open() as stream:
            for number, raw in enumerate(
                iter(partial(stream.readline, MAX_LINE_BYTES + 1), b""), 1
            ):
                start, offset = offset, offset + len(raw)
                if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    offset += _skip_line(stream)
                    self.problem(number, _too_long("line", offset - start, MAX_LINE_BYTES))
                    continue
                try:
                    text = _decode(raw, start)
                except RowError as error:
                    self.problem(number, str(error))
                else:
                    yield number, text.rstrip("\r\n")

    def records(self) -> Iterator[tuple[int, JsonObject]]:
        """The JSON object of every line that is not blank."""
        for number, line in self.lines():
            if not line.strip():
                continue
            try:
                record = check_object(_parse_json(line), "The line")
            except RowError as error:
                self.problem(number, str(error))
            else:
                yield number, record

    def document(self) -> object:
        """The file as one JSON value. Raises at once where there is none."""
        raw = b""
        with self._open() as stream:
            raw = stream.read(MAX_DOCUMENT_BYTES + 1)
        self.check()
        if len(raw) > MAX_DOCUMENT_BYTES:
            self.fail(0, _too_long("file", len(raw), MAX_DOCUMENT_BYTES))
        if not raw.strip():
            self.fail(0, "The file is empty. Put the dataset's own file there.")
        try:
            return _parse_json(_decode(raw))
        except RowError as error:
            self.fail(error.line, str(error))

    def collect(
        self, rows: Iterable[tuple[int, Row]], parse: Callable[[int, Row], Parsed | None]
    ) -> list[Parsed]:
        """`parse(line, row)` of every row; a `RowError` is noted, None leaves the row out."""
        found: list[Parsed] = []
        for line, row in rows:
            try:
                parsed = parse(line, row)
            except RowError as error:
                self.problem(line, str(error))
            else:
                if parsed is not None:
                    found.append(parsed)
        return found

    def each(
        self, items: Sequence[object], place: str, parse: Callable[[JsonObject, str, int], Parsed]
    ) -> list[Parsed]:
        """
        `parse(object, place, index)` of every object in a list inside a JSON document.

        JSON values have no line, so problems name their place as a path: `data[3].paragraphs[0]`.
        """
        found: list[Parsed] = []
        for index, item in enumerate(items):
            at = f"{place}[{index}]"
            try:
                found.append(parse(check_object(item, "The entry"), at, index))
            except RowError as error:
                self.problem(0, f"{at}: {error}")
        return found

    def question_set(self, name: str | None, questions: Sequence[Question]) -> QuestionSet:
        """The last step of every reader: all problems, or the set. Without a name, the file's."""
        if not questions and not self._problems:
            self.problem(0, "The file has no questions. Check that it is the right one, and whole.")
        self.check()
        return QuestionSet(name or self.path.name, tuple(questions))

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self.path.is_dir():
            raise InputError(f"{self.path} is a folder. Name the file in it that should be read.")
        try:
            with self._raw() as raw:
                if raw.peek(2)[:2] != _GZIP:
                    yield raw
                else:
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield cast(BinaryIO, unpacked)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self.problem(0, f"The gzip data is cut short or damaged ({error}). Fetch it again.")
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
    """`offset` is where these bytes begin in the file; a mark at its beginning falls away."""
    if offset == 0 and raw.startswith(_BOM):
        raw, offset = raw[len(_BOM) :], len(_BOM)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"Byte 0x{raw[error.start]:02x} at offset {offset + error.start} is not UTF-8."
        line = raw.count(b"\n", 0, error.start) + 1
        raise RowError(f"{message} Save the file as UTF-8.", line=line) from error


def _skip_line(stream: BinaryIO) -> int:
    """Read on to the end of the line, in pieces; how many bytes that were."""
    skipped = 0
    while piece := stream.readline(2**20):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise RowError(
            f"Not JSON: {error.msg} at column {error.colno}. Write it with a JSON library.",
            line=error.lineno,
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; nesting
        raise RowError(f"Not JSON that can be read: {error}. Check how it was made.") from error


def _too_long(what: str, size: int, limit: int) -> str:
    return (
        f"The {what} has {size:,} bytes or more and at most {limit:,} are read. "
        "Split it, or check that its line ends are in place."
    )
