"""The report as one HTML file: tables and pictures, no scripts, nothing to fetch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from .about import origins
from .lines import Cell, Line, Section
from .places import ResultFiles
from .plots import charts
from .published import papers
from .runs import RUNS
from .texts import Notes, difference, ours, printed, shown_measures

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


def html(results: ResultFiles, sections: Sequence[Section], *, banner: str = "") -> str:
    """The whole page."""
    body = "\n".join(_body(results, sections, banner))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>askline: results</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(results: ResultFiles, sections: Sequence[Section], banner: str) -> Iterator[str]:
    yield "<h1>Every table of the papers, beside ours</h1>"
    if banner:
        yield f"<p><strong>{escape(banner)}</strong></p>"
    yield (
        "<p>For each measure: what the paper prints, what was measured here, and the difference. "
        "± is the deviation over seeds; a range in brackets is the 95 % bootstrap interval over "
        "questions. Below a rule stand rows of ours that no paper has.</p>"
    )
    shown = dict.fromkeys(section.table.paper for section in sections)
    links = (f'<a href="#{paper}">{escape(papers()[paper])}</a>' for paper in shown)
    yield f"<nav>{''.join(links)}</nav>"
    pictures = charts(results, sections)
    if pictures:
        yield "<h2>Pictures</h2>"
        yield from pictures
    for paper in shown:
        yield f'<h2 id="{paper}">{escape(papers()[paper])}</h2>'
        for section in sections:
            if section.table.paper == paper:
                yield from _section(section)
    yield from _origins(results, sections)


def _section(section: Section) -> Iterator[str]:
    table = section.table
    yield f"<h3>{escape(f'{table.number}: {table.title}')} <small>{escape(table.on)}</small></h3>"
    stand_in = section.stand_in and f"{section.stand_in}; figures of other data are not subtracted"
    for text in (stand_in, table.note, section.short):
        if text:
            yield f"<p>{_prose(text.rstrip('.'))}.</p>"
    heads = "".join(
        f'<th colspan="3">{escape(shown_measures(measure))}</th>' for measure in table.measures
    )
    kinds = '<th class="soft">paper</th><th>ours</th><th></th>' * len(table.measures)
    yield (
        '<div class="wide"><table><thead>'
        f'<tr><th></th>{heads}<th>seeds</th><th class="left">differs</th></tr>'
        f"<tr><th></th>{kinds}<th></th><th></th></tr></thead>"
    )
    notes, fair = Notes(), not section.stand_in
    yield f"<tbody>{''.join(_row(line, notes, fair) for line in section.lines)}</tbody>"
    if section.extras:
        extras = "".join(_row(line, notes, fair) for line in section.extras)
        yield f'<tbody class="extra">{extras}</tbody>'
    yield "</table></div>"
    told = "".join(f"<li>{mark}: {_prose(text)}.</li>" for mark, text in notes.told())
    yield f"<ul>{told}{''.join(_commands([*section.lines, *section.extras]))}</ul>"


def _prose(text: str) -> str:
    """Text with what stands between backticks set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _row(line: Line, notes: Notes, fair: bool) -> str:
    cells = "".join(_cells(cell, fair) for cell in line.cells)
    absent = ' class="absent"' if line.state in ("not to be had", "not yet measured") else ""
    told = ": ".join(filter(None, (line.state if absent else "", notes.mark(line.differs))))
    seeds = line.seeds or ""
    return (
        f"<tr{absent}><td>{escape(line.name)}</td>{cells}<td>{seeds}</td>"
        f'<td class="left">{escape(told)}</td></tr>'
    )


def _cells(cell: Cell, fair: bool) -> str:
    """A difference is told where the data are the same."""
    apart = difference(cell) if fair else ""
    kind = (
        ("up" if (cell.difference or 0) >= 0 else "down") if _is_quality(cell.measure) else "soft"
    )
    return (
        f'<td class="soft">{escape(printed(cell))}</td>'
        f"<td><strong>{escape(ours(cell.ours, cell.measure))}</strong></td>"
        f'<td class="{kind}">{apart}</td>'
    )


def _is_quality(measure: str) -> bool:
    """Whether more of it is better; counts and times are neither good nor bad."""
    return any(name in measure for name in ("MAP", "MRR", "P@1", "EM", "F1"))


def _commands(lines: Iterable[Line]) -> Iterator[str]:
    for name in dict.fromkeys(line.run for line in lines if line.run):
        run = RUNS[name]
        yield (
            f"<li><code>{escape(run.command)}</code> "
            f'<span class="soft">→ research/results/{name}.json, {escape(run.takes)}</span></li>'
        )


def _origins(results: ResultFiles, sections: Sequence[Section]) -> Iterator[str]:
    yield "<h2>Where the figures come from</h2>"
    heads = ("file", "made", "commit", "machine", "packages")
    head = "".join(f'<th class="left">{name}</th>' for name in heads)
    yield f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>'
    for own in origins(results, sections):
        cells = (
            f"research/results/{own.file}.json",
            own.time,
            own.commit,
            own.machine,
            own.packages,
        )
        yield "<tr>" + "".join(f'<td class="left">{escape(cell)}</td>' for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
