"""How a published row is tied to a figure of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..places import Place

__all__ = ["Absent", "Extra", "Link", "Measured", "TableLinks"]


@dataclass(frozen=True)
class Measured:
    """Our figures for a row: a place for each measure, None where there is no such figure."""

    places: tuple[Place | None, ...]
    differs: str = ""
    """What is other than in the paper, in data or in model; nothing where nothing is."""
    run: str = ""
    """The run that makes the figures, by its name in `runs.py`; else the table's."""


@dataclass(frozen=True)
class Absent:
    """A row that cannot be had here, with the reason."""

    reason: str


Link: TypeAlias = Measured | Absent


@dataclass(frozen=True)
class Extra:
    """A row of ours that the paper has no counterpart of."""

    name: str
    link: Measured


@dataclass(frozen=True)
class TableLinks:
    """One published table beside ours."""

    rows: dict[str, Link]
    run: str = ""
    stand_in: str = ""
    """What stands in place of the paper's data, where they are not to be had."""
    extras: tuple[Extra, ...] = ()
    short: str = ""
    """Why rows fall short, as measured."""
