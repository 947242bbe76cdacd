"""Table rows as sentences, in every format that has tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from askline.text.readers import iter_sentences

from .samples import check, make_docx, originals, read

MARKDOWN = """# Trains

| Station | First | Last  |
|---------|-------|-------|
| Tarn    | 05:12 | 23:40 |
|         | 06:00 |       |

After.
"""
HTML = """<h1>Trains</h1>
<table><thead><tr><th>Station</th><th>First</th><th>Last</th></tr></thead>
<tr><td>Tarn</td><td>05:12</td><td>23:40</td></tr><tr><td></td><td>06:00</td></tr></table><p>After.
"""


ROWS = (("Station", "First", "Last"), ("Tarn", "05:12", "23:40"), ("", "06:00"))
LOOK = '<w:tblLook w:val="04A0" w:firstRow="1"/>'


def _docx(look: str, rows: Sequence[Sequence[str]] = ROWS, first: str = "") -> bytes:
    def row(*cells: str) -> str:
        return "".join(f"<w:tc><w:p><w:r><w:t>{c}</w:t></w:r></w:p></w:tc>" for c in cells)

    table = "".join(f"<w:tr>{'' if at else first}{row(*one)}</w:tr>" for at, one in enumerate(rows))
    heading = '<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Trains</w:t></w:r></w:p>'
    after = "<w:p><w:r><w:t>After.</w:t></w:r></w:p>"
    return make_docx(f"{heading}<w:tbl><w:tblPr>{look}</w:tblPr>{table}</w:tbl>{after}")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", MARKDOWN),
        ("a.html", HTML),
        ("a.docx", _docx(LOOK)),
    ],
    ids=["markdown", "html", "docx"],
)
def test_table_row_is_one_sentence_under_its_column_names(
    tmp_path: Path, name: str, content: str | bytes
) -> None:
    document = read(tmp_path, name, content)
    found = [(s.kind, document.text[s.start : s.end], s.heading) for s in iter_sentences(document)]
    assert found == [
        ("heading", "Trains", ""),
        ("columns", "Station\nFirst\nLast", "Trains"),
        ("row", "Tarn\n05:12\n23:40", "Trains · Station | First | Last"),
        ("cell", "06:00", "Trains · Station | First | Last"),
        ("sentence", "After.", "Trains"),
    ]
    check(document)


def test_table_row_slices_its_source_line(tmp_path: Path) -> None:
    assert originals(read(tmp_path, "a.md", MARKDOWN))[2] == "Tarn    | 05:12 | 23:40"
    row = "Tarn</td><td>05:12</td><td>23:40"
    assert originals(read(tmp_path, "a.html", HTML))[2] == row


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (_docx(""), ""),
        (_docx(LOOK, [("Height", "31 m"), ("Lamp", "electric")]), ""),
        (
            _docx("", [("Town", "Height"), ("Tarn", "31 m")], "<w:trPr><w:tblHeader/></w:trPr>"),
            " · Town | Height",
        ),
    ],
    ids=["no look", "facts", "marked"],
)
def test_header_rows_of_docx_tables(tmp_path: Path, content: bytes, columns: str) -> None:
    found = list(iter_sentences(read(tmp_path, "a.docx", content)))
    assert found[1].kind == ("columns" if columns else "row")
    assert found[2].heading == f"Trains{columns}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "<table><tr><th>Height<td>31 m<tr><th>Lamp<td>electric</table>",
            [("row", "Height\n31 m", ""), ("row", "Lamp\nelectric", "")],
        ),
        (
            "<table><tr><th>a<th>b<tr><td>1<td>2</table><table><tr><td>3<td>4</table>",
            [("columns", "a\nb", ""), ("row", "1\n2", "a | b"), ("row", "3\n4", "")],
        ),
        (
            "<table><tr><td>One. Two.<td>three</table>",
            [("cell", "One.", ""), ("cell", "Two.", ""), ("cell", "three", "")],
        ),
        (
            "<table><tr><td>out<td><table><tr><td>1<td>2</table><td>side<td>in</table>",
            [("cell", "out", ""), ("row", "1\n2", ""), ("row", "side\nin", "")],
        ),
        (f"<table><tr><td>{'long ' * 120}<td>x</table>", [("cell", "long " * 119 + "long", "")]),
        ("<td>no<td>table", [("sentence", "no", ""), ("sentence", "table", "")]),
        (
            "<table><tr><th>a<th>b</table>Text.",
            [("columns", "a\nb", ""), ("sentence", "Text.", "")],
        ),
    ],
    ids=["facts", "two tables", "prose", "nested", "long", "no table", "columns alone"],
)
def test_html_table_rows(tmp_path: Path, source: str, expected: list[tuple[str, str, str]]) -> None:
    document = read(tmp_path, "a.html", source)
    found = [(s.kind, document.text[s.start : s.end], s.heading) for s in iter_sentences(document)]
    assert found[: len(expected)] == expected
    check(document)


def test_long_heading_over_many_table_rows_takes_linear_time(tmp_path: Path) -> None:
    rows = "<tr><td>a</td><td>b</td></tr>" * 10_000
    page = f"<h1>{'x' * 1_000_000}</h1><table><tr><th>c</th><th>d</th></tr>{rows}</table>"
    start = time.process_time()
    found = list(iter_sentences(read(tmp_path, "a.html", page)))
    assert len({id(sentence.heading) for sentence in found}) == 3  # none, the heading, with columns
    assert time.process_time() - start < 5


def test_the_parts_of_a_long_list_have_its_lead_in(tmp_path: Path) -> None:
    names = ", ".join(f"name{number}" for number in range(200))
    document = read(tmp_path, "a.md", f"It has these: {names}. That is all.\n")
    spans = list(iter_sentences(document))
    parts = [document.text[span.start : span.end] for span in spans]
    assert all(part.endswith((",", ".")) for part in parts)
    assert [span.lead_in for span in spans] == ["", *["It has these:"] * (len(spans) - 2), ""]
    assert len(spans) > 5
