"""
Every figure in a Markdown table comes from a result file.

A figure with a decimal point must be in one of the result files that its page names
(`research/results/NAME.json`), rounded as on the page, or in a published table.
`research/results.md` is generated from the files and compared as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from research.make_results import (
    PEERS,
    README,
    SCALING,
    peers_table,
    readme_table,
    scaling_table,
    with_table,
)
from research.tables import ResultFiles, page, published

ROOT = Path(__file__).parent.parent
MADE = ROOT / "research" / "results.md"
GENERATED = {MADE, ROOT / "docs" / "reference" / "cli.md", ROOT / "docs" / "reference" / "http.md"}
PAGES = [
    path
    for path in (
        ROOT / "README.md",
        *sorted(ROOT.glob("docs/**/*.md")),
        *sorted(ROOT.glob("research/**/*.md")),
    )
    if path not in GENERATED
]
FIGURE = re.compile(r"(?<![\w.,-])(\d[\d,]*\.\d+)(?![\w.]|e-?\d)")


def numbers(value: Any) -> Iterator[float]:
    """Every number of a result file, those written inside a text too."""
    if isinstance(value, dict):
        for key, own in value.items():
            yield from numbers(key)
            yield from numbers(own)
    elif isinstance(value, list):
        for own in value:
            yield from numbers(own)
    elif isinstance(value, str):
        yield from (float(text) for text in re.findall(r"\d+\.?\d*(?:e-?\d+)?", value))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield abs(float(value))


@cache
def known(name: str) -> frozenset[float]:
    return frozenset(numbers(json.loads((ROOT / "research" / "results" / name).read_text("utf-8"))))


@cache
def printed() -> frozenset[float]:
    rows = (row for table in published() for row in table.rows)
    return frozenset(abs(value) for row in rows for value in row.values if value is not None)


def stands_in(text: str, values: frozenset[float]) -> bool:
    """Whether the figure is one of these, rounded; fractions may be shown as per cent."""
    figure, places = float(text.replace(",", "")), len(text.partition(".")[2])
    near = 0.5001 * 10**-places
    scales = (1, 100, 1000, 0.001, 1e-6)
    return any(abs(scale * value - figure) <= near for value in values for scale in scales)


def tables(path: Path) -> Iterator[list[tuple[int, list[str]]]]:
    """Each table of the page: its rows, with the numbers of their lines."""
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate([*path.read_text("utf-8").splitlines(), ""], 1):
        if line.startswith("|"):
            rows.append((number, [cell.strip() for cell in line.strip("|").split("|")]))
        elif rows:
            yield rows
            rows = []


def figures(path: Path) -> Iterator[tuple[int, str]]:
    """
    What the page's tables claim: line and figure.

    Heads and the first column are names, with versions and settings in them; a column headed `mean`
    follows from the others.
    """
    for (_, head), *rows in tables(path):
        for number, cells in rows:
            for name, cell in list(zip(head, cells, strict=False))[1:]:
                if not name.startswith("mean"):
                    yield from ((number, text) for text in FIGURE.findall(cell))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_figures_in_tables_stand_in_a_result_file(path: Path) -> None:
    names = sorted(set(re.findall(r"results/(\w+\.json)", path.read_text("utf-8"))))
    values = frozenset().union(printed(), *map(known, names))
    lost = sorted({own for own in figures(path) if not stands_in(own[1], values)})
    assert lost == [], f"not in {', '.join(names) or 'any file, for the page names none'}"


def test_the_page_of_results_is_made_from_the_files() -> None:
    assert MADE.read_text("utf-8") == page(ROOT / "research" / "results"), "run: make docs"


@pytest.mark.parametrize(
    ("path", "table", "name"),
    [
        (README, readme_table, "peers"),
        (PEERS, peers_table, "peers"),
        (SCALING, scaling_table, "scaling_costs"),
    ],
    ids=["readme", "peers", "scaling"],
)
def test_tables_between_marks_are_made_from_the_files(
    path: Path, table: Callable[[ResultFiles], str], name: str
) -> None:
    text = path.read_text("utf-8")
    made = table(ResultFiles(ROOT / "research" / "results"))
    assert made
    assert with_table(text, made, name) == text, "run: make docs"


@pytest.mark.parametrize(
    ("text", "stands"),
    [("74.8", True), ("74.76", True), ("74.7", False), ("37.5", True), ("0.04", False)],
)
def test_a_figure_is_looked_up_as_it_is_rounded(text: str, stands: bool) -> None:
    assert stands_in(text, frozenset([74.756, 0.375])) == stands
