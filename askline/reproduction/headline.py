"""The README's table of quality, latency and size, out of one run of `benchmarks.peers`."""

from __future__ import annotations

from typing import Any

from .places import ResultFiles

__all__ = ["BEGIN", "END", "headline", "with_headline"]

BEGIN = "<!-- made from results/peers.json by make docs -->"
END = "<!-- end of what make docs makes -->"
_QUALITY_AT = 100
_COUNTS = (100, 400, 1_300)


def headline(results: ResultFiles) -> str:
    """A Markdown table; nothing where the run has not been made."""
    found = results.at("peers", "rows")
    rows: list[dict[str, Any]] = found[0] if found else []
    names = dict.fromkeys(row["system"] for row in rows)
    heads = [f"P@1 / MAP of {_QUALITY_AT}", *(f"ms of {count:,}" for count in _COUNTS), "MB"]
    lines = [f"| ranker | {' | '.join(heads)} |", f"|{' --- |' * (len(heads) + 1)}"]
    lines += [_line(name, [row for row in rows if row["system"] == name]) for name in names]
    return "\n".join(lines) + "\n" if names else ""


def with_headline(text: str, results: ResultFiles) -> str:
    """The page with the table between its two marks; unchanged where it has none."""
    table = headline(results)
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (table and begin and end):
        return text
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    by_count = {row["candidates"]: row for row in rows}
    judged = by_count.get(_QUALITY_AT)
    quality = f"{judged['P@1']:.1f} / {judged['MAP']:.1f}" if judged else "–"
    times = (_time(by_count.get(count)) for count in _COUNTS)
    return f"| {name} | {quality} | {' | '.join(times)} | {rows[0]['MB']:.0f} |"


def _time(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    value = row["ms p50"]
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
