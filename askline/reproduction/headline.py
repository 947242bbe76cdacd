"""The README's table of quality, latency and size, out of one run of `benchmarks.peers`."""

from __future__ import annotations

from typing import Any

from .places import ResultFiles

__all__ = ["BEGIN", "END", "headline", "with_headline"]

BEGIN = "<!-- made from results/peers.json by make docs -->"
END = "<!-- end of what make docs makes -->"
_COUNTS = (20, 100, 400, 1_300)

Row = dict[str, Any]


def headline(results: ResultFiles) -> str:
    """A Markdown table; nothing where the run has not been made."""
    quality, times = _rows(results, "quality"), _rows(results, "rows")
    heads = ["P@1 / MAP", *(f"ms of {count:,}" for count in _COUNTS), "MB"]
    lines = [f"| ranker | {' | '.join(heads)} |", f"|{' --- |' * (len(heads) + 1)}"]
    lines += [
        _line(row, [own for own in times if own["system"] == row["system"]]) for row in quality
    ]
    return "\n".join(lines) + "\n" if quality and times else ""


def with_headline(text: str, results: ResultFiles) -> str:
    """The page with the table between its two marks; unchanged where it has none."""
    table = headline(results)
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (table and begin and end):
        return text
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def _rows(results: ResultFiles, key: str) -> list[Row]:
    found = results.at("peers", key)
    return found[0] if found else []


def _line(judged: Row, timed: list[Row]) -> str:
    by_count = {row["candidates"]: row for row in timed}
    quality = f"{judged['P@1']:.1f} / {judged['MAP']:.1f}"
    times = (_time(by_count.get(count)) for count in _COUNTS)
    return f"| {judged['system']} | {quality} | {' | '.join(times)} | {judged['MB']:.0f} |"


def _time(row: Row | None) -> str:
    if row is None:
        return "–"
    value = row["ms p50"]
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
