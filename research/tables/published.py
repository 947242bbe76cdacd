"""What the papers print, as `published.json` beside this file has it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["Published", "PublishedRow", "papers", "published"]


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A system's figures, one for each of the table's measures; None where the paper has none."""

    name: str
    values: tuple[float | None, ...]
    deviations: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """One table (or figure) of a paper."""

    id: str
    paper: str
    number: str
    title: str
    on: str
    measures: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    note: str = ""


@cache
def papers() -> dict[str, str]:
    """Short name → who wrote it and when, in the order of the report."""
    return dict(_read()["papers"])


@cache
def published() -> tuple[Published, ...]:
    """Every table, in the order of the report."""
    return tuple(_table(**table) for table in _read()["tables"])


def _table(measures: list[str], rows: list[dict[str, Any]], **about: str) -> Published:
    found = tuple(_row(row, len(measures)) for row in rows)
    return Published(measures=tuple(measures), rows=found, **about)


def _row(row: dict[str, Any], count: int) -> PublishedRow:
    given = row.get("deviations", [])
    deviations = (*given, *[None] * (count - len(given)))
    return PublishedRow(str(row["name"]), tuple(row["values"]), deviations)


@cache
def _read() -> dict[str, Any]:
    text = files(__package__).joinpath("published.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
