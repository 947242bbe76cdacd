"""The report: joined rows, Markdown, HTML, pictures."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from askline.errors import UnknownNameError
from research.tables import (
    Cell,
    Figure,
    ResultFiles,
    papers,
    sections,
    with_headline,
    write_report,
)
from research.tables.chart import Axis, Chart, Series
from research.tables.headline import BEGIN, END
from research.tables.texts import difference, number, ours, printed

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


def test_html_sets_code_as_code_and_colours_quality_alone(
    results: ResultFiles, tmp_path: Path
) -> None:
    page = write_report(results, tmp_path / "out").html.read_text("utf-8")
    assert "<code>askline data</code> reads it" in page
    assert page.count('<td class="down">−1.95</td>') == 1
    assert "`" not in page


def test_rows_are_joined_and_their_state_told(results: ResultFiles) -> None:
    table = next(own for own in sections(results) if own.table.id == "cosinet-4")
    lines = {line.name: line for line in table.lines}
    assert lines["Cosinet"].state == "measured"
    assert lines["Cosinet"].seeds == 5
    assert lines["Cosinet"].cells[0].difference == pytest.approx(-1.95)
    assert lines["CA"].state == "not yet measured"
    assert [line.name for line in table.extras] == ["Rel-CNN"]
    assert table.extras[0].state == "in part"


def test_rows_that_cannot_be_had_say_why(results: ResultFiles) -> None:
    table = next(own for own in sections(results) if own.table.id == "cascade-3-gpd")
    assert {line.state for line in table.lines} == {"not to be had"}
    assert all("GPD" in line.differs for line in table.lines)


def test_only_some_papers(results: ResultFiles) -> None:
    assert {own.table.paper for own in sections(results, ["report"])} == {"report"}
    with pytest.raises(UnknownNameError, match="cosnet"):
        sections(results, ["cosnet"])


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


def test_pictures_are_whole_and_without_figures_left_out(
    results: ResultFiles, tmp_path: Path
) -> None:
    page = write_report(results, tmp_path / "out").html.read_text("utf-8")
    pictures = [part.split("</svg>")[0] for part in page.split("<svg")[1:]]
    titles = [ET.fromstring(f"<svg{part}</svg>").get("aria-label") for part in pictures]
    assert len(titles) == 2
    assert "WikiQA test: MAP against parameters" in titles


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
def test_numbers_as_a_reader_sees_them(value: float, measure: str, text: str) -> None:
    assert number(value, measure) == text


def test_cells_as_a_reader_sees_them() -> None:
    cell = Cell("MAP", 70.95, 0.6, Figure(69.0, interval=(65.04, 73.0)))
    assert (printed(cell), ours(cell.ours, "MAP"), difference(cell)) == (
        "70.95 ± 0.6",
        "69.00 (65.0 to 73.0)",
        "−1.95",
    )
    nothing = Cell("MAP", None, None, None)
    assert (printed(nothing), ours(None, "MAP"), difference(nothing)) == ("–", "–", "")


def test_axes_hold_what_is_drawn() -> None:
    axis = Axis("x").fitted([83.1, 84.9])
    assert axis.low is not None
    assert axis.high is not None
    assert axis.low <= 83.1 < 84.9 <= axis.high
    assert axis.share(axis.low) == 0
    assert axis.share(axis.high) == 1
    assert len(Axis("x", least=6).fitted([83.14, 83.15]).ticks) >= 4
    assert len(Axis("x").fitted([50, 50]).ticks) > 1
    assert Axis("x", log=True).fitted([3, 2_000]).ticks == [1, 10, 100, 1_000, 10_000]


def test_a_chart_without_points_is_nothing() -> None:
    assert Chart("t", Axis("x"), Axis("y"), ()).svg() == ""


def test_names_in_a_chart_are_escaped() -> None:
    chart = Chart("a < b", Axis("x"), Axis("y"), (Series("c & d", ((1, 2), (2, 3))),))
    ET.fromstring(chart.svg())


def test_the_readmes_table_stands_between_its_marks(tmp_path: Path) -> None:
    quality = [{"system": "bm25", "P@1": 36.6, "MAP": 50.04, "MB": 0.0}]
    rows = [
        {"system": "bm25", "candidates": 100, "ms p50": 3.25, "MB": 0.0},
        {"system": "bm25", "candidates": 1300, "ms p50": 1250, "MB": 0.0},
    ]
    (tmp_path / "peers.json").write_text(json.dumps({"quality": quality, "rows": rows}))
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    made = with_headline(page, ResultFiles(tmp_path))
    assert "| bm25 | 36.6 / 50.0 | – | 3.2 | – | 1,250 | 0 |" in made
    assert "old" not in made
    assert made.startswith("before\n")
    assert made.endswith(f"{END}\nafter\n")
    assert with_headline(made, ResultFiles(tmp_path)) == made
    assert with_headline("no marks", ResultFiles(tmp_path)) == "no marks"
    assert with_headline(page, ResultFiles(tmp_path / "none")) == page


def test_more_series_than_colours_can_be_told_apart() -> None:
    series = tuple(Series(str(k), ((1.0, k), (2.0, k + 1.0)), line=True) for k in range(9))
    picture = ET.fromstring(Chart("t", Axis("x"), Axis("y"), series).svg())
    lines = [own for own in picture.iter() if own.tag.endswith("polyline")]
    looks = {(own.get("stroke"), own.get("stroke-dasharray")) for own in lines}
    assert len(looks) == len(series)
