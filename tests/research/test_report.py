"""The report: joined rows, Markdown, HTML and charts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from askline.errors import UnknownNameError
from research.benchmarks.common import PUBLISHED
from research.make_results import BEGIN, END, peers_table, readme_table, with_table
from research.tables import Cell, Figure, ResultFiles, page, papers, report_tables, write_report
from research.tables.charts import Axis, Chart, Series
from research.tables.report_rows import (
    difference_text,
    measured_text,
    number_text,
    published_text,
)

LIGHT = {
    "environment": {"time": "2026-01-02T03:04:05+00:00", "commit": "abc", "cpu": "a chip"},
    "device": "a card",
    "wikiqa": [
        {
            "row": "Cosinet",
            "parameters": 904_201,
            "seconds": 7.1,
            "seeds": 5,
            "test MAP": 69.0,
            "test MAP ±": 0.63,
            "test MRR": 70.75,
            "test MRR ±": 0.77,
        },
        {"row": "Rel-CNN", "test MAP": 67.9},
    ],
}
KEPT = {"kept": {"1": {"P@1": 50.0}, "10": {"P@1": 70.0}}}


@pytest.fixture
def results(tmp_path: Path) -> ResultFiles:
    (tmp_path / "light_rankers.json").write_text(json.dumps(LIGHT))
    padded = {"wikiqa:test padded to 1300": {"cosinet": KEPT}}
    (tmp_path / "sequential.json").write_text(json.dumps(padded))
    return ResultFiles(tmp_path)


def test_html_formats_code_and_colors_only_quality(results: ResultFiles, tmp_path: Path) -> None:
    page = write_report(results, tmp_path / "out").html.read_text("utf-8")
    assert "<code>askline data</code> reads them" in page
    assert page.count('<td class="down">−1.95</td>') == 1
    assert "`" not in page


def test_rows_are_joined_and_have_a_state(results: ResultFiles) -> None:
    table = next(own for own in report_tables(results) if own.table.id == "cosinet-4")
    lines = {line.name: line for line in table.rows}
    assert lines["Cosinet"].state == "measured"
    assert lines["Cosinet"].seeds == 5
    assert lines["Cosinet"].cells[0].difference == pytest.approx(-1.95)
    assert lines["CA"].state == "not yet measured"
    assert [line.name for line in table.extras] == ["Rel-CNN"]
    assert table.extras[0].state == "in part"


def test_rows_that_are_not_available_give_a_reason(results: ResultFiles) -> None:
    table = next(own for own in report_tables(results) if own.table.id == "cascade-3-gpd")
    assert {line.state for line in table.rows} == {"not available"}
    assert all("GPD" in line.note for line in table.rows)


def test_every_empty_cell_says_what_would_fill_it() -> None:
    published = ResultFiles(PUBLISHED)
    for section in report_tables(published):
        for row in (*section.rows, *section.extras):
            for cell in row.cells:
                assert (cell.ours is None) == bool(cell.empty), (section.table.id, row.name)
    text = page(PUBLISHED)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    bare = [line for line in rows if " – |" in line and "not yet measured" not in line]
    assert [line for line in bare if "**" in line] == []


def test_an_empty_cell_of_a_measured_row_has_a_note(results: ResultFiles, tmp_path: Path) -> None:
    written = write_report(results, tmp_path / "out")
    text = written.markdown.read_text("utf-8")
    found = re.search(r"\| Rel-CNN \| \*\*67.90\*\* \| – \((\w)\) \| – \(\1\) \| – \(\1\) \|", text)
    assert found
    assert f"- {found[1]}: not yet measured: the command below would fill it." in text
    assert f"<strong>– ({found[1]})</strong>" in written.html.read_text("utf-8")


def test_only_some_papers(results: ResultFiles) -> None:
    assert {own.table.paper for own in report_tables(results, ["report"])} == {"report"}
    with pytest.raises(UnknownNameError, match="cosnet"):
        report_tables(results, ["cosnet"])


def test_report_is_written_in_both_forms(results: ResultFiles, tmp_path: Path) -> None:
    written = write_report(results, tmp_path / "out", quick=True)
    text = written.markdown.read_text("utf-8")
    row = "| Cosinet | 70.95 ± 0.6 · **69.00 ± 0.6** · −1.95 |"
    assert row in text
    assert "904,000 · **904,201**" in text
    assert (
        "`research/results/light_rankers.json` | 2026-01-02 03:04 | abc | a chip; a card |" in text
    )
    assert "quick run" in text
    assert "sets" in written.missing
    page = written.html.read_text("utf-8")
    assert "69.00 ± 0.6" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert all(f'id="{paper}"' in page for paper in papers())


def test_charts_are_valid_and_left_out_without_figures(
    results: ResultFiles, tmp_path: Path
) -> None:
    page = write_report(results, tmp_path / "out").html.read_text("utf-8")
    pictures = [part.split("</svg>")[0] for part in page.split("<svg")[1:]]
    titles = [ET.fromstring(f"<svg{part}</svg>").get("aria-label") for part in pictures]
    assert len(titles) == 2
    assert "WikiQA test: MAP by parameters" in titles


@pytest.mark.parametrize(
    ("value", "measure", "text"),
    [
        (1_129_501, "parameters", "1,129,501"),
        (-37.2, "cost", "−37 %"),
        (1_070, "seconds", "1,070"),
        (0.352, "seconds", "0.352"),
        (74.755, "MAP", "74.75"),
    ],
)
def test_number_format(value: float, measure: str, text: str) -> None:
    assert number_text(value, measure) == text


def test_cell_format() -> None:
    cell = Cell("MAP", 70.95, 0.6, Figure(69.0, interval=(65.04, 73.0)))
    assert (published_text(cell), measured_text(cell.ours, "MAP"), difference_text(cell)) == (
        "70.95 ± 0.6",
        "69.00 (65.0 to 73.0)",
        "−1.95",
    )
    nothing = Cell("MAP", None, None, None)
    assert (published_text(nothing), measured_text(None, "MAP"), difference_text(nothing)) == (
        "–",
        "–",
        "",
    )


def test_axes_contain_all_values() -> None:
    axis = Axis("x").fitted([83.1, 84.9])
    assert axis.low is not None
    assert axis.high is not None
    assert axis.low <= 83.1 < 84.9 <= axis.high
    assert axis.share(axis.low) == 0
    assert axis.share(axis.high) == 1
    assert len(Axis("x", least=6).fitted([83.14, 83.15]).ticks) >= 4
    assert len(Axis("x").fitted([50, 50]).ticks) > 1
    assert Axis("x", log=True).fitted([3, 2_000]).ticks == [1, 10, 100, 1_000, 10_000]


def test_a_chart_without_points_is_empty() -> None:
    assert Chart("t", Axis("x"), Axis("y"), ()).svg() == ""


def test_names_in_a_chart_are_escaped() -> None:
    chart = Chart("a < b", Axis("x"), Axis("y"), (Series("c & d", ((1, 2), (2, 3))),))
    ET.fromstring(chart.svg())


@pytest.fixture
def peers(tmp_path: Path) -> ResultFiles:
    quality = [
        {"system": "bm25s", "P@1": 36.6, "MAP": 50.04, "MB": 0.0},
        {"system": "jaccard", "P@1": 30.0, "MAP": 40.0, "MB": 0.0},
    ]
    rows = [
        {"system": "jaccard", "candidates": 100, "ms p50": 1.0, "MB": 0.0},
        {"system": "bm25s", "candidates": 100, "ms p50": 3.25, "MB": 0.0},
        {"system": "bm25s", "candidates": 1300, "ms p50": 1250, "MB": 0.0},
    ]
    (tmp_path / "peers.json").write_text(json.dumps({"quality": quality, "rows": rows}))
    return ResultFiles(tmp_path)


def test_the_table_of_peers_has_every_system_and_list_length(peers: ResultFiles) -> None:
    lines = peers_table(peers).splitlines()
    assert lines[2:] == [
        "| jaccard | 30.0 / 40.0 | – | 1.0 | – | – | – | 0 |",
        "| bm25s | 36.6 / 50.0 | – | 3.2 | – | 1,250 | – | 0 |",
    ]


def test_the_readme_table_has_few_systems_and_one_list_length(peers: ResultFiles) -> None:
    assert readme_table(peers).splitlines()[2:] == ["| bm25s | 36.6 | 3.2 | 0 |"]


def test_a_table_is_replaced_between_its_marks(peers: ResultFiles, tmp_path: Path) -> None:
    page = f"before\n{BEGIN.format(name='peers')}\nold\n{END}\nafter\n"
    made = with_table(page, peers_table(peers))
    assert "| bm25s |" in made
    assert "old" not in made
    assert made.startswith("before\n")
    assert made.endswith(f"{END}\nafter\n")
    assert with_table(made, peers_table(peers)) == made
    assert with_table("no marks", peers_table(peers)) == "no marks"
    missing = ResultFiles(tmp_path / "none")
    assert with_table(page, peers_table(missing)) == page
    assert with_table(page, readme_table(missing)) == page


def test_more_series_than_colors_are_distinguishable() -> None:
    series = tuple(Series(str(k), ((1.0, k), (2.0, k + 1.0)), line=True) for k in range(9))
    picture = ET.fromstring(Chart("t", Axis("x"), Axis("y"), series).svg())
    lines = [own for own in picture.iter() if own.tag.endswith("polyline")]
    looks = {(own.get("stroke"), own.get("stroke-dasharray")) for own in lines}
    assert len(looks) == len(series)
