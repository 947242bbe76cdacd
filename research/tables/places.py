"""
Where a figure stands in the result files.

A place is a file and the steps into it: a key of an object, a number into a list, or conditions
that the wanted rows of a list fulfil (a value, or a pattern that it matches). Conditions may choose
several rows, one a seed: the figure is then their mean, with their deviation. A file or a key that
is not there is no error, for a run may not have been made yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from re import Pattern
from statistics import fmean, stdev
from typing import Any, TypeAlias

from askline.errors import InputError

__all__ = ["Figure", "Place", "ResultFiles", "Step", "place"]

Step: TypeAlias = str | int | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value with how far it is to be trusted."""

    value: float
    deviation: float | None = None
    """Over seeds."""
    interval: tuple[float, float] | None = None
    """95 %, over questions."""
    seeds: int | None = None


@dataclass(frozen=True)
class Place:
    """Steps into a result file; the value found is multiplied, then shifted."""

    file: str
    steps: tuple[Step, ...]
    scale: float = 1.0
    shift: float = 0.0
    deviation: tuple[Step, ...] | None = None
    interval: tuple[Step, ...] | None = None
    seeds: tuple[Step, ...] | int | None = None

    def scaled(self, scale: float, shift: float = 0.0) -> Place:
        """The same place in another unit."""
        return replace(self, scale=scale, shift=shift)


def place(file: str, *steps: Step, **more: Any) -> Place:
    """A place, written shortly."""
    return Place(file, steps, **more)


class ResultFiles:
    """The JSON files of one or more folders; of a file that several have, the first is taken."""

    def __init__(self, *folders: str | PathLike[str]) -> None:
        self.folders = tuple(Path(folder) for folder in folders)
        self._read: dict[str, dict[str, Any] | None] = {}

    def get(self, name: str) -> dict[str, Any] | None:
        """What `NAME.json` holds, or None where there is no such file."""
        if name not in self._read:
            paths = (folder / f"{name}.json" for folder in self.folders)
            path = next((path for path in paths if path.is_file()), None)
            self._read[name] = None if path is None else _load(path)
        return self._read[name]

    def find(self, where: Place) -> Figure | None:
        """The figure at that place, or None where it has not been measured."""
        values = self._numbers(where.file, where.steps)
        if not values:
            return None
        return Figure(
            where.scale * fmean(values) + where.shift,
            self._deviation(where, values),
            self._interval(where),
            self._seeds(where, values),
        )

    def at(self, file: str, *steps: Step) -> list[Any]:
        """Everything that the steps lead to."""
        record = self.get(file)
        return [] if record is None else list(_walk(record, steps))

    def _numbers(self, file: str, steps: Sequence[Step]) -> list[float]:
        found = self.at(file, *steps)
        return [float(x) for x in found if isinstance(x, (int, float)) and not isinstance(x, bool)]

    def _deviation(self, where: Place, values: list[float]) -> float | None:
        if where.deviation is not None:
            values = self._numbers(where.file, where.deviation)
            return where.scale * values[0] if values else None
        return where.scale * stdev(values) if len(values) > 1 else None

    def _interval(self, where: Place) -> tuple[float, float] | None:
        found = self.at(where.file, *where.interval) if where.interval else []
        if not found or not isinstance(found[0], list):
            return None
        low, high = (where.scale * end + where.shift for end in found[0])
        return low, high

    def _seeds(self, where: Place, values: list[float]) -> int | None:
        if isinstance(where.seeds, tuple):
            found = self._numbers(where.file, where.seeds)
            return int(found[0]) if found else None
        return where.seeds or (len(values) if len(values) > 1 else None)


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
    """Equal, or of the form wanted where that is a pattern."""
    if isinstance(wanted, Pattern):
        return isinstance(value, str) and wanted.fullmatch(value) is not None
    return bool(value == wanted)


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is no JSON file: {error}.") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} must hold one JSON object, got a {type(found).__name__}.")
    return found
