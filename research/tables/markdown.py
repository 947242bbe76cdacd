"""The report as Markdown: `research/results.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .about import Origin, origins
from .lines import Cell, Line, Section
from .places import ResultFiles
from .published import papers
from .runs import RUNS
from .texts import Notes, difference, ours, printed, shown_measures

__all__ = ["markdown"]

_HEAD = """\
# Results: every table of the papers, beside ours

Made from `research/results/*.json` by `make docs`. Each figure has three parts: what
the paper prints, **what was measured here**, and the difference. ± is the deviation over seeds; a
range in brackets is the 95 % bootstrap interval over questions. Below a rule stand rows of ours
that no paper has. How each measure is taken, and where the papers contradict themselves:
[measures](notes/measures.md).
"""


def markdown(results: ResultFiles, sections: Sequence[Section], *, banner: str = "") -> str:
    """The whole page."""
    parts = [_HEAD, *([f"\n**{banner}**\n"] if banner else []), "\n", *_summary(sections)]
    for paper, own in _by_paper(sections):
        parts.append(f"\n## {paper}\n")
        for section in own:
            parts += _section(section)
    parts += ["\n## Where the figures come from\n\n", *_origins(origins(results, sections))]
    return "".join(parts)


def _by_paper(sections: Iterable[Section]) -> Iterator[tuple[str, list[Section]]]:
    grouped: dict[str, list[Section]] = {}
    for section in sections:
        grouped.setdefault(section.table.paper, []).append(section)
    for paper, own in grouped.items():
        yield papers()[paper], own


def _summary(sections: Sequence[Section]) -> Iterator[str]:
    lines = [line for section in sections for line in section.lines]
    states = {name: sum(line.state == name for line in lines) for name in _STATES}
    yield f"{len(lines)} published rows: "
    yield "; ".join(f"{count} {name}" for name, count in states.items() if count) + ".\n"


_STATES = ("measured", "in part", "not yet measured", "not to be had")


def _section(section: Section) -> Iterator[str]:
    table = section.table
    yield f"\n### {table.number}: {table.title} ({table.on})\n\n"
    stand_in = section.stand_in and f"{section.stand_in}; figures of other data are not subtracted"
    told = [f"{text}." for text in (stand_in, table.note.rstrip(".")) if text]
    if told:
        yield " ".join(told) + "\n\n"
    notes = Notes()
    header = ["row", *map(shown_measures, table.measures), "seeds", "differs"]
    yield f"| {' | '.join(header)} |\n|{' --- |' * len(header)}\n"
    fair = not section.stand_in
    for line in section.lines:
        yield _row(line, notes, fair)
    if section.extras:
        yield f"| *ours alone* |{' |' * (len(header) - 1)}\n"
        for line in section.extras:
            yield _row(line, notes, fair)
    yield "\n"
    if section.short:
        yield f"{section.short}\n\n"
    yield from (f"- {mark}: {text}.\n" for mark, text in notes.told())
    yield from _commands([*section.lines, *section.extras])


def _row(line: Line, notes: Notes, fair: bool) -> str:
    seeds = str(line.seeds) if line.seeds else ""
    if line.state == "not yet measured":
        seeds = "not yet measured"
    cells = [_cell(cell, fair) for cell in line.cells]
    return f"| {line.name} | {' | '.join(cells)} | {seeds} | {notes.mark(line.differs)} |\n"


def _cell(cell: Cell, fair: bool) -> str:
    if cell.ours is None:
        return printed(cell)
    measured = f"**{ours(cell.ours, cell.measure)}**"
    if cell.published is None:
        return measured
    parts = (printed(cell), measured, difference(cell) if fair else "")
    return " · ".join(filter(None, parts))


def _commands(lines: Iterable[Line]) -> Iterator[str]:
    names = dict.fromkeys(line.run for line in lines if line.run)
    for name in names:
        run = RUNS[name]
        yield f"- `{run.command}` → `research/results/{name}.json` ({run.takes})\n"


def _origins(found: Iterable[Origin]) -> Iterator[str]:
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
