"""
Generate research/results.md and the README's table of rankers from the result files.

    python -m research.make_results
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from research.tables import ResultFiles, page

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "research" / "results"
TARGET = ROOT / "research" / "results.md"
README = ROOT / "README.md"

BEGIN = "<!-- made from research/results/peers.json by make docs -->"
END = "<!-- end of what make docs makes -->"
_COUNTS = (20, 100, 400, 1_300)

Row = dict[str, Any]


def readme_table(results: ResultFiles) -> str:
    """The table as Markdown; empty if the benchmark has not been run."""
    times = _rows(results, "rows")
    quality = {row["system"]: row for row in _rows(results, "quality")}
    judged = ["P@1 / MAP"] if quality else []
    heads = ["ranker", *judged, *(f"ms of {count:,}" for count in _COUNTS), "MB"]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for name in dict.fromkeys(row["system"] for row in times):
        own = [row for row in times if row["system"] == name]
        cells = [name, *([_quality(quality.get(name))] if quality else []), *_times(own)]
        lines.append(f"| {' | '.join(cells)} | {own[0]['MB']:.0f} |")
    return "\n".join(lines) + "\n" if times else ""


def with_readme_table(text: str, results: ResultFiles) -> str:
    """The page with a new table between its two marks; unchanged if it has no marks."""
    table = readme_table(results)
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (table and begin and end):
        return text
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def _rows(results: ResultFiles, key: str) -> list[Row]:
    found = results.at("peers", key)
    return found[0] if found else []


def _quality(row: Row | None) -> str:
    return f"{row['P@1']:.1f} / {row['MAP']:.1f}" if row else "–"


def _times(rows: list[Row]) -> list[str]:
    by_count = {row["candidates"]: row for row in rows}
    return [_time(by_count.get(count)) for count in _COUNTS]


def _time(row: Row | None) -> str:
    if row is None:
        return "–"
    value = row["ms p50"]
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


if __name__ == "__main__":
    TARGET.write_text(page(RESULTS), encoding="utf-8")
    text = README.read_text("utf-8")
    README.write_text(with_readme_table(text, ResultFiles(RESULTS)), encoding="utf-8")
