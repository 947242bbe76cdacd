"""The report as Markdown (`research/results.md`), and both forms written to a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from askline.text.atomic_write import atomic_write
from research.runs import RUNS

from .html import html
from .published import papers
from .report_rows import (
    STATES,
    Cell,
    Notes,
    Provenance,
    ReportRow,
    ReportTable,
    column_heading,
    difference_text,
    measured_text,
    missing,
    provenance,
    published_text,
    report_tables,
)
from .result_files import ResultFiles

__all__ = ["Written", "markdown", "page", "write_report"]

QUICK_BANNER = (
    "A quick run that only tests the programs: few questions, one seed, small settings. "
    "Figures of trained models have no meaning."
)


@dataclass(frozen=True, slots=True)
class Written:
    """The written pages, their tables, and result files that are missing."""

    markdown: Path
    html: Path
    tables: tuple[ReportTable, ...]
    missing: tuple[str, ...]
    """Result files that rows use and that do not exist."""


def page(folder: str | PathLike[str]) -> str:
    """The text of `research/results.md` for the result files of a folder."""
    results = ResultFiles(folder)
    return markdown(results, report_tables(results))


def write_report(
    results: ResultFiles, out: Path, *, only: Sequence[str] = (), quick: bool = False
) -> Written:
    """Write `OUT/results.md` and `OUT/results.html`."""
    out.mkdir(parents=True, exist_ok=True)
    found = report_tables(results, only)
    banner = QUICK_BANNER if quick else ""
    pages = out / "results.md", out / "results.html"
    texts = (form(results, found, banner=banner) for form in (markdown, html))
    for path, text in zip(pages, texts, strict=True):
        with atomic_write(path) as stream:
            stream.write(text.encode())
    return Written(*pages, tuple(found), tuple(missing(results, found)))


_HEAD = """\
# Results: every table of the papers beside our figures

Generated from `research/results/*.json` by `make docs`. A figure has three parts: the published
value, **our value**, and the difference. ± is the standard deviation over seeds; a range in
parentheses is the 95 % bootstrap interval over questions. Rows below *ours only* are in no paper.
Where a row or a cell has no figure of ours, its note says what would fill it.
How each measure is computed, and where the papers contradict themselves:
[measures](notes/measures.md).
"""


def markdown(results: ResultFiles, tables: Sequence[ReportTable], *, banner: str = "") -> str:
    """The whole page."""
    parts = [_HEAD, *([f"\n**{banner}**\n"] if banner else []), "\n", *_summary(tables)]
    for paper, own in _by_paper(tables):
        parts.append(f"\n## {paper}\n")
        for section in own:
            parts += _section(section)
    parts += ["\n## Provenance of the figures\n\n", *_provenance_table(provenance(results, tables))]
    return "".join(parts)


def _by_paper(tables: Iterable[ReportTable]) -> Iterator[tuple[str, list[ReportTable]]]:
    grouped: dict[str, list[ReportTable]] = {}
    for section in tables:
        grouped.setdefault(section.table.paper, []).append(section)
    for paper, own in grouped.items():
        yield papers()[paper], own


def _summary(tables: Sequence[ReportTable]) -> Iterator[str]:
    rows = [row for section in tables for row in section.rows]
    states = {name: sum(row.state == name for row in rows) for name in STATES}
    yield f"{len(rows)} published rows: "
    yield "; ".join(f"{count} {name}" for name, count in states.items() if count) + ".\n"


def _section(section: ReportTable) -> Iterator[str]:
    table = section.table
    yield f"\n### {table.number}: {table.title} ({table.on})\n\n"
    replacement = section.replacement and f"{section.replacement}; differences are not shown"
    listed = [f"{text}." for text in (replacement, table.note.rstrip(".")) if text]
    if listed:
        yield " ".join(listed) + "\n\n"
    notes = Notes()
    header = ["row", *map(column_heading, table.measures), "seeds", "note"]
    yield f"| {' | '.join(header)} |\n|{' --- |' * len(header)}\n"
    comparable = not section.replacement
    for row in section.rows:
        yield _row(row, notes, comparable)
    if section.extras:
        yield f"| *ours only* |{' |' * (len(header) - 1)}\n"
        for row in section.extras:
            yield _row(row, notes, comparable)
    yield "\n"
    if section.remark:
        yield f"{section.remark}\n\n"
    yield from (f"- {mark}: {text}.\n" for mark, text in notes.listed())
    yield from _commands([*section.rows, *section.extras])


def _row(row: ReportRow, notes: Notes, comparable: bool) -> str:
    seeds = str(row.seeds) if row.seeds else ""
    if row.state == "not yet measured":
        seeds = "not yet measured"
    whole = row.state in ("not available", "not yet measured")
    own = notes.mark(row.note)
    cells = [_cell(cell, comparable, "" if whole else notes.mark(cell.empty)) for cell in row.cells]
    return f"| {row.name} | {' | '.join(cells)} | {seeds} | {own} |\n"


def _cell(cell: Cell, comparable: bool, mark: str) -> str:
    """`mark` is the letter of the note on an empty cell; empty if the row's note explains it."""
    if cell.ours is None:
        known = published_text(cell) if cell.published is not None or not mark else ""
        return " · ".join(filter(None, (known, mark and f"– ({mark})")))
    measured = f"**{measured_text(cell.ours, cell.measure)}**"
    if cell.published is None:
        return measured
    parts = (published_text(cell), measured, difference_text(cell) if comparable else "")
    return " · ".join(filter(None, parts))


def _commands(rows: Iterable[ReportRow]) -> Iterator[str]:
    names = dict.fromkeys(name for row in rows for name in row.run.split())
    for name in names:
        run = RUNS[name]
        yield f"- `{run.command}` → `research/results/{name}.json` ({run.takes})\n"


def _provenance_table(found: Iterable[Provenance]) -> Iterator[str]:
    yield "| file | made | commit | machine | packages |\n| --- | --- | --- | --- | --- |\n"
    for own in found:
        cells = (
            f"`research/results/{own.file}.json`",
            own.time,
            own.commit,
            own.machine,
            own.packages,
        )
        yield f"| {' | '.join(cells)} |\n"
