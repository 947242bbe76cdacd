"""
Taking values out of JSON objects, with a clear word where one is missing or of the wrong kind.

Each function raises `RowError`, whose message becomes the problem of that row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = [
    "Record",
    "RowError",
    "Unique",
    "array",
    "as_record",
    "as_text",
    "field",
    "integer",
    "kind",
    "labels",
    "text",
    "texts",
]

Record = dict[str, object]

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


class Unique:
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


def kind(value: object) -> str:
    """A JSON value's kind in plain words."""
    return next((word for types, word in _KINDS if isinstance(value, types)), "null")


def as_record(value: object, what: str) -> Record:
    """A JSON object."""
    if not isinstance(value, dict):
        raise RowError(f"{what} must be a JSON object {{…}}, got {kind(value)}.")
    return value


def as_text(value: object, what: str, *, blank: bool = False) -> str:
    """A text of whole characters; one without any only where `blank` allows it."""
    if not isinstance(value, str):
        raise RowError(f"{what} must be a text, got {kind(value)}.")
    if not blank and not value.strip():
        raise RowError(f"{what} is empty. Fill it in, or remove it.")
    if not value.isascii() and not value.isprintable():
        _check_surrogates(value, what)
    return value


def field(record: Record, key: str) -> object:
    """The value under a key that must be there."""
    try:
        return record[key]
    except KeyError:
        found = f", only {', '.join(map(repr, record))}" if record else ": the object is empty"
        raise RowError(f"No {key!r}{found:.200}. Add it to the row.") from None


def text(record: Record, key: str) -> str:
    """A text that is not blank."""
    return as_text(field(record, key), repr(key))


def integer(record: Record, key: str) -> int:
    """A whole number."""
    value = field(record, key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RowError(f"{key!r} must be a whole number, got {kind(value)}.")
    return value


def array(record: Record, key: str) -> list[object]:
    """A list, which may be empty."""
    value = field(record, key)
    if not isinstance(value, list):
        raise RowError(f"{key!r} must be a list, got {kind(value)}.")
    return value


def texts(record: Record, key: str, *, blank: bool = False) -> list[str]:
    """A list of at least one text."""
    values = array(record, key)
    if not values:
        raise RowError(f"{key!r} has no entries. Give at least one, or remove the row.")
    return [as_text(value, f"{key!r}[{place}]", blank=blank) for place, value in enumerate(values)]


def labels(values: Iterable[object], count: int, what: str = "'labels'") -> Sequence[bool]:
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
