"""The report as one HTML file: tables and charts, no scripts, no external files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from research.runs import RUNS

from .charts import charts
from .published import papers
from .report_rows import (
    Cell,
    Notes,
    ReportRow,
    ReportTable,
    column_heading,
    difference_text,
    measured_text,
    provenance,
    published_text,
)
from .result_files import ResultFiles

__all__ = ["html"]

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2329; --soft: #5c6670; --rule: #e2e6ea;
  --band: #f5f7f9; --good: #0b7a4b; --less: #b3401f; --series-0: #0072b2; --series-1: #d55e00;
  --series-2: #009e73; --series-3: #9a5fb5; --series-4: #a87900; --series-5: #5b6b7a;
  --series-6: #c2185b; --series-7: #3b3b3b; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --ink: #e6eaee; --soft: #9aa5b1;
  --rule: #2b333b; --band: #1b2127; --good: #5fd39b; --less: #ff9d7a; --series-0: #58b4f0;
  --series-1: #ff9a52; --series-2: #35d0a0; --series-3: #cfa0e8; --series-4: #e6b93c;
  --series-5: #a3b3c2; --series-6: #ff85b3; --series-7: #d5d5d5; } }
body { margin: 0 auto; max-width: 1280px; padding: 32px 20px 80px; background: var(--paper);
  color: var(--ink); font: 15px/1.55 system-ui, sans-serif; }
h1 { font-size: 28px; line-height: 1.2; } h2 { margin-top: 56px; } h3 { margin: 36px 0 8px; }
p, li { max-width: 76ch; } .soft, small { color: var(--soft); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums;
  font-size: 13.5px; margin: 8px 0; } th, td { padding: 5px 8px; text-align: right;
  border-bottom: 1px solid var(--rule); white-space: nowrap; vertical-align: top; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--paper); } td.left, th.left { text-align: left; }
thead th, thead th:first-child { background: var(--band); } th[colspan] { text-align: center; }
tbody.extra { border-top: 2px solid var(--soft); }
tr.absent td { color: var(--soft); } .up { color: var(--good); } .down { color: var(--less); }
svg { display: block; width: 100%; max-width: 870px; height: auto; margin: 20px 0 32px; }
code { font-size: 13px; } nav a { margin-right: 14px; } a { color: var(--series-0); }
"""


def html(results: ResultFiles, tables: Sequence[ReportTable], *, banner: str = "") -> str:
    """The whole page."""
    body = "\n".join(_body(results, tables, banner))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>askline: results</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(results: ResultFiles, tables: Sequence[ReportTable], banner: str) -> Iterator[str]:
    yield "<h1>Every table of the papers beside our figures</h1>"
    if banner:
        yield f"<p><strong>{escape(banner)}</strong></p>"
    yield (
        "<p>For each measure: the published value, our value, and the difference. ± is the "
        "standard deviation over seeds; a range in parentheses is the 95 % bootstrap interval over "
        "questions. Rows below the line are in no paper.</p>"
    )
    shown = dict.fromkeys(section.table.paper for section in tables)
    links = (f'<a href="#{paper}">{escape(papers()[paper])}</a>' for paper in shown)
    yield f"<nav>{''.join(links)}</nav>"
    pictures = charts(results, tables)
    if pictures:
        yield "<h2>Charts</h2>"
        yield from pictures
    for paper in shown:
        yield f'<h2 id="{paper}">{escape(papers()[paper])}</h2>'
        for section in tables:
            if section.table.paper == paper:
                yield from _section(section)
    yield from _provenance_table(results, tables)


def _section(section: ReportTable) -> Iterator[str]:
    table = section.table
    yield f"<h3>{escape(f'{table.number}: {table.title}')} <small>{escape(table.on)}</small></h3>"
    replacement = section.replacement and f"{section.replacement}; differences are not shown"
    for text in (replacement, table.note, section.remark):
        if text:
            yield f"<p>{_prose(text.rstrip('.'))}.</p>"
    heads = "".join(
        f'<th colspan="3">{escape(column_heading(measure))}</th>' for measure in table.measures
    )
    kinds = '<th class="soft">paper</th><th>ours</th><th></th>' * len(table.measures)
    yield (
        '<div class="wide"><table><thead>'
        f'<tr><th></th>{heads}<th>seeds</th><th class="left">note</th></tr>'
        f"<tr><th></th>{kinds}<th></th><th></th></tr></thead>"
    )
    notes, comparable = Notes(), not section.replacement
    yield f"<tbody>{''.join(_row(row, notes, comparable) for row in section.rows)}</tbody>"
    if section.extras:
        extras = "".join(_row(row, notes, comparable) for row in section.extras)
        yield f'<tbody class="extra">{extras}</tbody>'
    yield "</table></div>"
    listed = "".join(f"<li>{mark}: {_prose(text)}.</li>" for mark, text in notes.listed())
    yield f"<ul>{listed}{''.join(_commands([*section.rows, *section.extras]))}</ul>"


def _prose(text: str) -> str:
    """Escaped text, with backticks turned into code elements."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _row(row: ReportRow, notes: Notes, comparable: bool) -> str:
    absent = ' class="absent"' if row.state in ("not available", "not yet measured") else ""
    own = notes.mark(row.note)
    cells = "".join(
        _cells(cell, comparable, "" if absent else notes.mark(cell.empty)) for cell in row.cells
    )
    listed = ": ".join(filter(None, (row.state if absent else "", own)))
    seeds = row.seeds or ""
    return (
        f"<tr{absent}><td>{escape(row.name)}</td>{cells}<td>{seeds}</td>"
        f'<td class="left">{escape(listed)}</td></tr>'
    )


def _cells(cell: Cell, comparable: bool, mark: str) -> str:
    """
    Published value, our value and, if the data are the same, the difference.

    `mark` is the letter of the note on an empty cell.
    """
    ours = measured_text(cell.ours, cell.measure) + (f" ({mark})" if mark else "")
    apart = difference_text(cell) if comparable else ""
    kind = (
        ("up" if (cell.difference or 0) >= 0 else "down") if _is_quality(cell.measure) else "soft"
    )
    return (
        f'<td class="soft">{escape(published_text(cell))}</td>'
        f"<td><strong>{escape(ours)}</strong></td>"
        f'<td class="{kind}">{apart}</td>'
    )


def _is_quality(measure: str) -> bool:
    """Whether a higher value is better; counts and times get no color."""
    return any(name in measure for name in ("MAP", "MRR", "P@1", "EM", "F1"))


def _commands(rows: Iterable[ReportRow]) -> Iterator[str]:
    for name in dict.fromkeys(name for row in rows for name in row.run.split()):
        run = RUNS[name]
        yield (
            f"<li><code>{escape(run.command)}</code> "
            f'<span class="soft">→ research/results/{name}.json, {escape(run.takes)}</span></li>'
        )


def _provenance_table(results: ResultFiles, tables: Sequence[ReportTable]) -> Iterator[str]:
    yield "<h2>Provenance of the figures</h2>"
    heads = ("file", "made", "commit", "machine", "packages")
    head = "".join(f'<th class="left">{name}</th>' for name in heads)
    yield f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>'
    for own in provenance(results, tables):
        cells = (
            f"research/results/{own.file}.json",
            own.time,
            own.commit,
            own.machine,
            own.packages,
        )
        yield "<tr>" + "".join(f'<td class="left">{escape(cell)}</td>' for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
