"""
Result files, and paths to figures in them.

A JSON path is a file and steps into it: a key of an object, an index into a list, or conditions on
the rows of a list (a value, or a pattern that it matches). Conditions may select several rows, one
per seed: the figure is then their mean, with their standard deviation. A missing file or key is not
an error, because a benchmark may not have been run yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from re import Pattern
from statistics import fmean, stdev
from typing import Any, TypeAlias

from askline.errors import InputError

__all__ = ["Figure", "JsonPath", "ResultFiles", "Step", "json_path"]

Step: TypeAlias = str | int | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value with its uncertainty."""

    value: float
    deviation: float | None = None
    """Standard deviation over seeds."""
    interval: tuple[float, float] | None = None
    """95 % bootstrap interval over questions."""
    seeds: int | None = None


@dataclass(frozen=True)
class JsonPath:
    """Steps into a result file; the value is multiplied by `scale`, then `shift` is added."""

    file: str
    steps: tuple[Step, ...]
    scale: float = 1.0
    shift: float = 0.0
    deviation: tuple[Step, ...] | None = None
    interval: tuple[Step, ...] | None = None
    seeds: tuple[Step, ...] | int | None = None


def json_path(file: str, *steps: Step, **more: Any) -> JsonPath:
    """Short form of the constructor."""
    return JsonPath(file, steps, **more)


class ResultFiles:
    """The JSON files of one or more folders; earlier folders take precedence."""

    def __init__(self, *folders: str | PathLike[str]) -> None:
        self.folders = tuple(Path(folder) for folder in folders)
        self._read: dict[str, dict[str, Any] | None] = {}

    def get(self, name: str) -> dict[str, Any] | None:
        """The content of `NAME.json`, or None if there is no such file."""
        if name not in self._read:
            paths = (folder / f"{name}.json" for folder in self.folders)
            path = next((path for path in paths if path.is_file()), None)
            self._read[name] = None if path is None else _load(path)
        return self._read[name]

    def find(self, path: JsonPath) -> Figure | None:
        """The figure at a path, or None if it has not been measured."""
        values = self._numbers(path.file, path.steps)
        if not values:
            return None
        return Figure(
            path.scale * fmean(values) + path.shift,
            self._deviation(path, values),
            self._interval(path),
            self._seeds(path, values),
        )

    def at(self, file: str, *steps: Step) -> list[Any]:
        """All values that the steps lead to."""
        record = self.get(file)
        return [] if record is None else list(_walk(record, steps))

    def _numbers(self, file: str, steps: Sequence[Step]) -> list[float]:
        found = self.at(file, *steps)
        return [float(x) for x in found if isinstance(x, (int, float)) and not isinstance(x, bool)]

    def _deviation(self, path: JsonPath, values: list[float]) -> float | None:
        if path.deviation is not None:
            values = self._numbers(path.file, path.deviation)
            return path.scale * values[0] if values else None
        return path.scale * stdev(values) if len(values) > 1 else None

    def _interval(self, path: JsonPath) -> tuple[float, float] | None:
        found = self.at(path.file, *path.interval) if path.interval else []
        if not found or not isinstance(found[0], list):
            return None
        low, high = (path.scale * end + path.shift for end in found[0])
        return low, high

    def _seeds(self, path: JsonPath, values: list[float]) -> int | None:
        if isinstance(path.seeds, tuple):
            found = self._numbers(path.file, path.seeds)
            return int(found[0]) if found else None
        return path.seeds or (len(values) if len(values) > 1 else None)


def _walk(value: Any, steps: Sequence[Step]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, *rest = steps
    if isinstance(step, Mapping):
        for row in value if isinstance(value, list) else ():
            if isinstance(row, dict) and all(_fits(row.get(key), own) for key, own in step.items()):
                yield from _walk(row, rest)
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield from _walk(value[step], rest)
    elif isinstance(value, dict) and step in value:
        yield from _walk(value[step], rest)


def _fits(value: Any, wanted: Any) -> bool:
    """Whether the value equals `wanted`, or matches it if that is a pattern."""
    if isinstance(wanted, Pattern):
        return isinstance(value, str) and wanted.fullmatch(value) is not None
    return bool(value == wanted)


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not a JSON file: {error}.") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} must hold one JSON object, got a {type(found).__name__}.")
    return found
