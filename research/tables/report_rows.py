"""Published and measured figures joined row by row, their text, and their provenance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from askline.errors import UnknownNameError

from . import cascade_rows, cosinet_rows, efficientqa_rows, sequential_rows
from .published import Published, PublishedRow, papers, published
from .result_files import Figure, JsonPath, ResultFiles
from .row_mapping import Absent, Empty, Measured, RowSource, TableMapping

__all__ = [
    "STATES",
    "TABLE_MAPPINGS",
    "Cell",
    "Notes",
    "Provenance",
    "ReportRow",
    "ReportTable",
    "State",
    "column_heading",
    "difference_text",
    "measured_text",
    "missing",
    "number_text",
    "provenance",
    "published_text",
    "report_tables",
]

TABLE_MAPPINGS: dict[str, TableMapping] = {
    **cosinet_rows.TABLES,
    **cascade_rows.TABLES,
    **sequential_rows.TABLES,
    **efficientqa_rows.TABLES,
}
"""By the id of the published table."""

State = Literal["measured", "in part", "not yet measured", "not available"]
STATES: tuple[State, ...] = ("measured", "in part", "not yet measured", "not available")


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one row."""

    measure: str
    published: float | None
    deviation: float | None
    """The paper's standard deviation over seeds."""
    ours: Figure | None
    empty: str = ""
    """If there is no figure of ours: what would fill the cell, or why nothing can."""

    @property
    def difference(self) -> float | None:
        """Our figure minus the published one."""
        if self.ours is None or self.published is None:
            return None
        return self.ours.value - self.published


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A row of the report; a row of ours only has no published figures."""

    name: str
    cells: tuple[Cell, ...]
    state: State
    note: str
    """What differs from the paper, or why the row is not available."""
    run: str

    @property
    def seeds(self) -> int | None:
        """Number of runs that the figures are the mean of."""
        return next((cell.ours.seeds for cell in self.cells if cell.ours and cell.ours.seeds), None)


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One published table with all its rows, and additional rows of ours."""

    table: Published
    rows: tuple[ReportRow, ...]
    extras: tuple[ReportRow, ...]
    replacement: str
    """The data used in place of the paper's; empty if they are the same."""
    remark: str


def report_tables(results: ResultFiles, only: Sequence[str] = ()) -> list[ReportTable]:
    """All tables of the report, or those of the papers in `only`."""
    for name in only:
        if name not in papers():
            raise UnknownNameError("paper", name, papers())
    return [
        _report_table(table, results) for table in published() if not only or table.paper in only
    ]


def _report_table(table: Published, results: ResultFiles) -> ReportTable:
    mapping = TABLE_MAPPINGS[table.id]
    rows = (
        _report_row(row, mapping.rows[row.name], table, mapping.run, results) for row in table.rows
    )
    extras = _extras(table, results)
    return ReportTable(table, tuple(rows), tuple(extras), mapping.replacement, mapping.remark)


def _extras(table: Published, results: ResultFiles) -> Iterator[ReportRow]:
    """Rows of ours only; those not yet measured are left out."""
    mapping = TABLE_MAPPINGS[table.id]
    nothing = (None,) * len(table.measures)
    for extra in mapping.extras:
        row = PublishedRow(extra.name, nothing, nothing)
        found = _report_row(row, extra.source, table, mapping.run, results)
        if found.state != "not yet measured":
            yield found


def _report_row(
    row: PublishedRow, source: RowSource, table: Published, run: str, results: ResultFiles
) -> ReportRow:
    if isinstance(source, Absent):
        found: list[Figure | None] = [None] * len(table.measures)
        why = [source.reason] * len(table.measures)
        state: State = "not available"
        note, run = source.reason, ""
    else:
        found = [None if isinstance(path, Empty) else results.find(path) for path in source.paths]
        state, note, run = _state(source, found), source.note, source.run or run
        why = [_why(path, figure) for path, figure in zip(source.paths, found, strict=True)]
    cells = zip(table.measures, row.values, row.deviations, found, why, strict=True)
    return ReportRow(row.name, tuple(Cell(*cell) for cell in cells), state, note, run)


def _why(path: JsonPath | Empty, figure: Figure | None) -> str:
    """Why a cell is empty; nothing if it is not."""
    if isinstance(path, Empty):
        return path.reason
    return "" if figure else "not yet measured: the command below would fill it"


def _state(source: Measured, found: Sequence[Figure | None]) -> State:
    wanted = sum(not isinstance(path, Empty) for path in source.paths)
    there = sum(figure is not None for figure in found)
    if not there:
        return "not yet measured"
    return "measured" if there == wanted else "in part"


COUNTS = {"questions", "sentences", "parameters"}
_LOWER_IS_BETTER = {"seconds", "cost"}


def number_text(value: float, measure: str) -> str:
    """A number with the decimals of its measure and a typographic minus sign."""
    if measure in COUNTS:
        return f"{value:,.0f}"
    if measure == "seconds":
        text = f"{value:,.0f}" if abs(value) >= 20 else f"{value:.3g}"
    elif measure == "cost":
        text = f"{value:+.0f} %"
    else:
        text = f"{value:.2f}"
    return text.replace("-", "−")


def published_text(cell: Cell) -> str:
    """The published figure."""
    if cell.published is None:
        return "–"
    spread = f" ± {cell.deviation:.1f}" if cell.deviation is not None else ""
    return number_text(cell.published, cell.measure) + spread


def measured_text(figure: Figure | None, measure: str) -> str:
    """Our figure with its standard deviation over seeds or its interval over questions."""
    if figure is None:
        return "–"
    text = number_text(figure.value, measure)
    if figure.deviation is not None and measure not in COUNTS | _LOWER_IS_BETTER:
        return f"{text} ± {figure.deviation:.1f}"
    if figure.interval is not None:
        low, high = figure.interval
        return f"{text} ({low:.1f} to {high:.1f})"
    return text


def difference_text(cell: Cell) -> str:
    """Our figure minus the published one; empty for counts, seconds and costs."""
    apart = cell.difference
    if apart is None or cell.measure in COUNTS | _LOWER_IS_BETTER:
        return ""
    return f"{apart:+.2f}".replace("-", "−")


def column_heading(measure: str) -> str:
    """The heading of a column."""
    words = {"cost": "cost against full depth", "answered": "answered, %", "seconds": "seconds"}
    return words.get(measure, measure)


class Notes:
    """Notes that several rows share, each listed once under a letter."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """The letter of a note; empty for an empty note."""
        return self._marks.setdefault(text, _letter(len(self._marks))) if text else ""

    def listed(self) -> Iterator[tuple[str, str]]:
        """Letters with their notes."""
        return ((mark, text) for text, mark in self._marks.items())


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"a{number - 25}"


@dataclass(frozen=True, slots=True)
class Provenance:
    """
    Origin of the figures of a result file.

    A plus sign after the commit means uncommitted changes; only old files have it.
    """

    file: str
    time: str
    commit: str
    machine: str
    packages: str


_PLOTTED = ("peers", "calibration", "cascade_grid", "cascade_gpu", "engine_growth")


def provenance(results: ResultFiles, sections: Iterable[ReportTable]) -> list[Provenance]:
    """Of every existing file that a row or a chart uses."""
    found = ((name, results.get(name)) for name in _files(sections))
    return [_origin(name, record) for name, record in found if record is not None]


def missing(results: ResultFiles, sections: Iterable[ReportTable]) -> list[str]:
    """Result files that rows use and that do not exist."""
    return [name for name in _files(sections) if results.get(name) is None]


def _files(sections: Iterable[ReportTable]) -> list[str]:
    found = set(_PLOTTED)
    for section in sections:
        mapping = TABLE_MAPPINGS[section.table.id]
        for source in (*mapping.rows.values(), *(extra.source for extra in mapping.extras)):
            if isinstance(source, Measured):
                found |= {path.file for path in source.paths if isinstance(path, JsonPath)}
    return sorted(found)


def _origin(name: str, record: dict[str, Any]) -> Provenance:
    about = record.get("environment", {})
    device = record.get("device") or record.get("trained_on") or about.get("device") or ""
    machine = "; ".join(filter(None, (_processor(about), _named(device))))
    packages = {"python": about.get("python"), **about.get("packages", {})}
    return Provenance(
        name,
        str(about.get("time", "–"))[:16].replace("T", " "),
        str(about.get("commit", "–")),
        machine or "–",
        ", ".join(f"{key} {value}" for key, value in packages.items() if value) or "–",
    )


def _processor(about: dict[str, Any]) -> str:
    """CPU, cores and the widest int8 instruction set; older files lack the last."""
    cores = f"{about['cores']} cores" if "cores" in about else ""
    widest = next(iter(about.get("instructions", ())[-1:]), "")
    return ", ".join(filter(None, (about.get("cpu", ""), cores, widest)))


def _named(device: str) -> str:
    return "" if device == "cpu" else device
