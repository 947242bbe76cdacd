"""Published and measured, joined row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from askline.errors import UnknownNameError

from .links import LINKS, Absent, Link, Measured
from .places import Figure, ResultFiles
from .published import Published, PublishedRow, papers, published

__all__ = ["Cell", "Line", "Section", "State", "sections"]

State = Literal["measured", "in part", "not yet measured", "not to be had"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one row."""

    measure: str
    published: float | None
    deviation: float | None
    """The paper's own, over its seeds."""
    ours: Figure | None

    @property
    def difference(self) -> float | None:
        """Ours less the published one."""
        if self.ours is None or self.published is None:
            return None
        return self.ours.value - self.published


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the report; one without published figures is ours alone."""

    name: str
    cells: tuple[Cell, ...]
    state: State
    differs: str
    """Or why there is nothing to set beside."""
    run: str

    @property
    def seeds(self) -> int | None:
        """How many runs the figures are the mean of."""
        return next((cell.ours.seeds for cell in self.cells if cell.ours and cell.ours.seeds), None)


@dataclass(frozen=True, slots=True)
class Section:
    """One published table with all its rows, and rows of ours below them."""

    table: Published
    lines: tuple[Line, ...]
    extras: tuple[Line, ...]
    stand_in: str
    short: str


def sections(results: ResultFiles, only: Sequence[str] = ()) -> list[Section]:
    """The report, whole or the papers named alone."""
    for name in only:
        if name not in papers():
            raise UnknownNameError("paper", name, papers())
    return [_section(table, results) for table in published() if not only or table.paper in only]


def _section(table: Published, results: ResultFiles) -> Section:
    links = LINKS[table.id]
    lines = (_line(row, links.rows[row.name], table, links.run, results) for row in table.rows)
    extras = _extras(table, results)
    return Section(table, tuple(lines), tuple(extras), links.stand_in, links.short)


def _extras(table: Published, results: ResultFiles) -> Iterator[Line]:
    """Those that have been measured; a row of ours alone is not owed to anybody."""
    links = LINKS[table.id]
    nothing = (None,) * len(table.measures)
    for extra in links.extras:
        row = PublishedRow(extra.name, nothing, nothing)
        line = _line(row, extra.link, table, links.run, results)
        if line.state != "not yet measured":
            yield line


def _line(row: PublishedRow, link: Link, table: Published, run: str, results: ResultFiles) -> Line:
    if isinstance(link, Absent):
        found: list[Figure | None] = [None] * len(table.measures)
        state: State = "not to be had"
        differs, run = link.reason, ""
    else:
        found = [results.find(where) if where else None for where in link.places]
        state, differs, run = _state(link, found), link.differs, link.run or run
    cells = zip(table.measures, row.values, row.deviations, found, strict=True)
    return Line(row.name, tuple(Cell(*cell) for cell in cells), state, differs, run)


def _state(link: Measured, found: Sequence[Figure | None]) -> State:
    wanted = sum(where is not None for where in link.places)
    there = sum(figure is not None for figure in found)
    if not there:
        return "not yet measured"
    return "measured" if there == wanted else "in part"
