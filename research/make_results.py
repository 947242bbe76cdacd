"""
Generate research/results.md and the two tables of peers from the result files.

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
PEERS = ROOT / "research" / "notes" / "peers.md"
SCALING = ROOT / "docs" / "guides" / "scaling.md"

BEGIN = "<!-- made from research/results/{name}.json by make docs -->"
END = "<!-- end of what make docs makes -->"
_COUNTS = (20, 100, 400, 1_300, 5_000)
_README_COUNT = 100
_README_NAMES = {
    "cosinet % 100 >> cascade": "**askline**, default (`cosinet % 100 >> cascade`)",
    "cosinet": "**askline**, `cosinet`",
    "sentence-transformers, torch": "sentence-transformers, torch",
    "sentence-transformers, openvino": "sentence-transformers, OpenVINO",
    "rerankers": "rerankers",
    "FlashRank, int8": "FlashRank, int8",
    "fastembed, float32": "fastembed, float32",
    "bm25s": "bm25s",
}
"""The systems of the README's table, in its order, with the names that it gives them."""

Row = dict[str, Any]


def readme_table(results: ResultFiles) -> str:
    """Few systems, one list length; empty if the benchmark has not been run."""
    by_system = {
        row["system"]: row
        for row in _rows(results, "rows")
        if row["candidates"] == _README_COUNT and row["system"] in _README_NAMES
    }
    quality = {row["system"]: row for row in _rows(results, "quality")}
    rows = [
        [shown, _percent(quality.get(name)), _time(by_system[name]), f"{by_system[name]['MB']:.0f}"]
        for name, shown in _README_NAMES.items()
        if name in by_system
    ]
    return _markdown(["ranker", "P@1", "ms", "MB"], rows)


def peers_table(results: ResultFiles) -> str:
    """Every system and list length; empty if the benchmark has not been run."""
    times = _rows(results, "rows")
    quality = {row["system"]: row for row in _rows(results, "quality")}
    rows = []
    for name in dict.fromkeys(row["system"] for row in times):
        own = [row for row in times if row["system"] == name]
        rows.append([name, _quality(quality.get(name)), *_times(own), f"{own[0]['MB']:.0f}"])
    heads = ["ranker", "P@1 / MAP", *(f"ms, {count:,}" for count in _COUNTS), "MB"]
    return _markdown(heads, rows)


def scaling_table(results: ResultFiles) -> str:
    """The plan for large uses; empty if the benchmark has not been run."""
    found = results.at("scaling_costs", "plan")
    if not found:
        return ""
    plan: dict[str, Row] = found[0]
    names = ("100 GB", "a billion sentences")
    heads = ["", *(f"{name} of text" if "GB" in name else name for name in names)]
    rows = [[key, *(f"{plan[name][key]:,}" for name in names)] for key in plan[names[0]]]
    return _markdown(heads, rows)


def with_table(text: str, table: str, name: str = "peers") -> str:
    """The page with a new table between its two marks; unchanged without table or marks."""
    mark = BEGIN.format(name=name)
    before, begin, rest = text.partition(mark)
    _, end, after = rest.partition(END)
    if not (table and begin and end):
        return text
    return f"{before}{mark}\n\n{table}\n{END}{after}"


def _markdown(heads: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _rows(results: ResultFiles, key: str) -> list[Row]:
    found = results.at("peers", key)
    return found[0] if found else []


def _percent(row: Row | None) -> str:
    return f"{row['P@1']:.1f}" if row else "–"


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
    results = ResultFiles(RESULTS)
    TARGET.write_text(page(RESULTS), encoding="utf-8")
    for path, table in ((README, readme_table(results)), (PEERS, peers_table(results))):
        path.write_text(with_table(path.read_text("utf-8"), table), encoding="utf-8")
    scaling = with_table(SCALING.read_text("utf-8"), scaling_table(results), "scaling_costs")
    SCALING.write_text(scaling, encoding="utf-8")
