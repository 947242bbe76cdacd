"""Presentations, spreadsheets and OpenDocument files."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from askline.errors import DataError
from askline.text.readers import iter_sentences, read_document

from .samples import (
    CellValue,
    check,
    make_odf,
    make_pptx,
    make_relations,
    make_shape,
    make_xlsx,
    make_zip,
    read,
    refusal,
    shown,
)

LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'
STYLES = """<styleSheet><numFmts><numFmt numFmtId="170" formatCode="yyyy\\-mm\\-dd"/></numFmts>
<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
<cellXfs><xf numFmtId="0"/><xf numFmtId="9"/><xf numFmtId="170"/><xf numFmtId="20"/></cellXfs>
</styleSheet>"""


def headings(document: object) -> list[str]:
    return [sentence.heading for sentence in iter_sentences(document)]  # type: ignore[arg-type]


# Presentations


def test_slides_in_order_with_titles_and_notes(tmp_path: Path) -> None:
    slides = [
        make_shape("It burns paraffin.", "It is old.")
        + make_shape("The lamp", kind="title")
        + make_shape("7", kind="sldNum"),
        make_shape("A slide without a title."),
    ]
    document = read(tmp_path, "a.pptx", make_pptx(slides, notes=[make_shape("Speak slowly.")]))
    assert shown(document) == [
        ("heading", "The lamp"),
        ("sentence", "It burns paraffin."),
        ("sentence", "It is old."),
        ("sentence", "Speak slowly."),
        ("sentence", "A slide without a title."),
    ]
    assert headings(document) == ["", "The lamp", "The lamp", "The lamp", ""]
    assert str(document.place(document.text.index("Speak"))) == "slide 1"
    assert str(document.place(document.text.index("A slide"))) == "slide 2"
    assert (document.title, document.encoding) == ("The lamp", None)
    check(document)


def test_tables_breaks_and_fields_of_slides(tmp_path: Path) -> None:
    def cell(text: str) -> str:
        return f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    table = (
        f"<p:graphicFrame><a:tbl><a:tr>{cell('Part')}{cell('Metal')}</a:tr>"
        f"<a:tr>{cell('Shutter')}{cell('Brass')}</a:tr></a:tbl></p:graphicFrame>"
    )
    text = '<a:p><a:r><a:t>One</a:t></a:r><a:br/><a:fld type="slidenum"><a:t>3</a:t></a:fld>'
    shape = f"<p:sp><p:txBody>{text}<a:r><a:t>two.</a:t></a:r></a:p></p:txBody></p:sp>"
    document = read(tmp_path, "a.pptx", make_pptx([table + shape]))
    assert shown(document) == [
        ("row", "Part\nMetal"),
        ("row", "Shutter\nBrass"),
        ("sentence", "One\ntwo."),
    ]


# Spreadsheets


def test_rows_have_the_names_of_the_columns_as_context(tmp_path: Path) -> None:
    rows: list[list[CellValue]] = [
        ["Keepers of the tower"],
        [],
        ["Name", "Born", "Share", "Since"],
        ["Ann", 1980, '<c r="C4" s="1"><v>0.25</v></c>', '<c r="D4" s="2"><v>45000</v></c>'],
        ["Bo", 0.1 + 0.2, True, '<c r="D5" s="3"><v>0.75</v></c>'],
    ]
    document = read(tmp_path, "a.xlsx", make_xlsx({"Staff": rows}, xl_styles=STYLES))
    assert shown(document) == [
        ("sentence", "Keepers of the tower"),
        ("columns", "Name\nBorn\nShare\nSince"),
        ("row", "Ann\n1980\n25%\n2023-03-15"),
        ("row", "Bo\n0.3\nTRUE\n18:00"),
    ]
    assert headings(document)[2:] == ["Staff · Name | Born | Share | Since"] * 2
    assert [part.row for part in document.parts] == [1, 3, 4, 5]
    check(document)


def test_sheets_are_places_and_default_names_are_no_headings(tmp_path: Path) -> None:
    table: list[list[CellValue]] = [["Name", "Age"], ["Ann", 41]]
    document = read(tmp_path, "a.xlsx", make_xlsx({"Sheet1": table, "Old": table}))
    assert headings(document) == ["", "Name | Age", "Old", "Old · Name | Age"]
    assert str(document.place(len(document.text) - 2)) == "sheet 2"


def test_questions_and_answers_in_a_sheet(tmp_path: Path) -> None:
    rows = [["Id", "Question", "Answer"], ["q1", "Who lights it?", "Ann does. At dusk."]]
    document = read(tmp_path, "a.xlsx", make_xlsx({"FAQ": rows}))
    assert shown(document) == [("sentence", "Ann does."), ("sentence", "At dusk.")]
    assert headings(document) == ["Who lights it?"] * 2
    assert [(part.id, part.row) for part in document.parts] == [("q1", 2)]


def test_the_columns_of_a_sheet_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(make_xlsx({"A": [["Name", "About"], ["Ann", "She is old."]]}))
    assert read_document(path, columns=["about"]).text == "She is old.\n"
    with pytest.raises(DataError, match="No column 'abuot'. Found: 'Name', 'About'."):
        read_document(path, columns=["abuot"])


# OpenDocument


def cells(*texts: str) -> str:
    found = "".join(
        f"<table:table-cell><text:p>{each}</text:p></table:table-cell>" for each in texts
    )
    return f"<table:table-row>{found}</table:table-row>"


def test_text_with_headings_lists_tables_and_notes(tmp_path: Path) -> None:
    body = (
        "<office:text><text:tracked-changes><text:p>Deleted.</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1">The tower</text:h>'
        '<text:h text:outline-level="2">The lamp</text:h>'
        "<text:p>It <text:span>burns</text:span>\n   paraffin<text:note><text:note-citation>1"
        "</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body></text:note>"
        '.<text:line-break/>It is<text:s text:c="3"/>old.</text:p>'
        "<text:list><text:list-item><text:p>Clean it.</text:p></text:list-item></text:list>"
        f"<table:table><table:table-header-rows>{cells('Part', 'Metal')}</table:table-header-rows>"
        f"{cells('Shutter', 'Brass')}</table:table></office:text>"
    )
    meta = '<m xmlns:dc="d"><dc:title>On towers</dc:title></m>'
    document = read(tmp_path, "a.odt", make_odf(body, meta=meta))
    assert shown(document) == [
        ("heading", "The tower"),
        ("heading", "The lamp"),
        ("sentence", "A note."),
        ("sentence", "It burns paraffin."),
        ("sentence", "It is   old."),
        ("sentence", "Clean it."),
        ("columns", "Part\nMetal"),
        ("row", "Shutter\nBrass"),
    ]
    last = list(iter_sentences(document))[-1]
    assert last.context.headings == ("The tower", "The lamp")
    assert last.heading == "The lamp · Part | Metal"
    assert str(document.place(document.text.index("Clean"))) == "paragraph 5"
    assert document.title == "On towers"
    check(document)


def test_slides_of_opendocument(tmp_path: Path) -> None:
    def frame(kind: str, text: str) -> str:
        return f'<draw:frame presentation:class="{kind}"><text:p>{text}</text:p></draw:frame>'

    pages = [
        frame("title", "The lamp") + frame("outline", "It burns."),
        frame("outline", "Second."),
    ]
    body = "".join(f"<draw:page>{page}{frame('footer', 'x')}</draw:page>" for page in pages)
    document = read(
        tmp_path, "a.odp", make_odf(f"<office:presentation>{body}</office:presentation>")
    )
    assert shown(document) == [
        ("heading", "The lamp"),
        ("sentence", "It burns."),
        ("sentence", "Second."),
    ]
    assert headings(document) == ["", "The lamp", ""]
    assert str(document.place(document.text.index("Second"))) == "slide 2"
    check(document)


def test_spreadsheets_of_opendocument_with_repeated_rows(tmp_path: Path) -> None:
    repeated = 'table:number-rows-repeated="1000000"'
    empty = f"<table:table-row {repeated}><table:table-cell/></table:table-row>"
    number = '<table:table-cell office:value-type="float"><text:p>41</text:p></table:table-cell>'
    row = cells("Ann").replace("</table:table-row>", f"{number}</table:table-row>")
    body = f'<table:table table:name="Staff">{cells("Name", "Age")}{empty}{row}</table:table>'
    document = read(tmp_path, "a.ods", make_odf(f"<office:spreadsheet>{body}</office:spreadsheet>"))
    assert shown(document) == [("columns", "Name\nAge"), ("row", "Ann\n41")]
    assert headings(document)[1] == "Staff · Name | Age"
    assert [part.row for part in document.parts] == [1, 1_000_002]
    check(document)


# Damaged and hostile files

MANIFEST = """<m><file-entry full-path="content.xml"><encryption-data/></file-entry></m>"""


@pytest.mark.parametrize("suffix", ["pptx", "xlsx", "odt", "epub"])
def test_a_damaged_archive_is_refused(tmp_path: Path, suffix: str) -> None:
    assert "or it is damaged or truncated" in refusal(tmp_path, f"a.{suffix}", b"PK\x03\x04nothing")
    assert "It is a zip archive without" in refusal(tmp_path, f"b.{suffix}", make_zip({"a": "b"}))
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    assert "or has a password" in refusal(tmp_path, f"c.{suffix}", old)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pptx", {"ppt/presentation.xml": LAUGHS}),
        ("a.xlsx", {"xl/workbook.xml": LAUGHS}),
        ("a.odt", {"content.xml": LAUGHS}),
        ("a.epub", {"META-INF/container.xml": LAUGHS}),
    ],
)
def test_entities_are_refused(tmp_path: Path, name: str, content: dict[str, str | bytes]) -> None:
    assert "It declares a document type" in refusal(tmp_path, name, make_zip(content))


def test_a_password_is_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.odt"
    path.write_bytes(make_odf("<office:text/>", **{"META-INF__manifest": MANIFEST}))
    with pytest.raises(DataError, match="It has a password.") as info:
        read_document(path)
    assert info.value.problems[0].reason == "password"


@pytest.mark.parametrize("name", ["a.pptx", "a.xlsx", "a.odt"])
def test_a_bomb_is_stopped_while_unpacking(tmp_path: Path, name: str) -> None:
    text = "x" * 3_000_000
    content = {
        "a.pptx": make_pptx([make_shape(text)]),
        "a.xlsx": make_xlsx({"A": [[text]]}),
        "a.odt": make_odf(f"<office:text><text:p>{text}</text:p></office:text>"),
    }[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match="unpacks to more than 1,000,000 bytes. Split it.") as info:
        read_document(path, max_bytes=1_000_000)
    assert info.value.problems[0].reason == "too large"


def test_values_that_point_nowhere_are_left_out(tmp_path: Path) -> None:
    rows: list[list[CellValue]] = [
        [
            '<c r="A1" t="s"><v>99</v></c>',
            '<c r="ZZZZZ1" t="s"><v>-1</v></c>',
            '<c t="e"><v>#N/A</v></c>',
        ],
        ['<c r="A2" s="999"><v>nan</v></c>', '<c r="B2" t="str"><v>Kept text here.</v></c>'],
        ['<c r="A3" s="2"><v>1e300</v></c>'],
    ]
    document = read(tmp_path, "a.xlsx", make_xlsx({"A": rows}, xl_styles=STYLES))
    assert "Kept text here." in document.text
    relations = make_relations([("rId1", "slide", "../../../etc/passwd")])
    presentation = "<p xmlns:r='r'><sldId id='1' r:id='rId1'/><sldId id='2' r:id='rId9'/></p>"
    content = make_zip(
        {"ppt/presentation.xml": presentation, "ppt/_rels/presentation.xml.rels": relations}
    )
    assert "no text" in refusal(tmp_path, "a.pptx", content)


def test_many_elements_take_linear_time(tmp_path: Path) -> None:
    rng = random.Random(0)  # so that the ratio of packing is that of text
    words = [f"w{rng.randrange(10**9)}" for _ in range(60_000)]
    table = "<table:table>" * 500 + cells(*words[:20_000]) + "</table:table>" * 500
    start = time.process_time()
    read(tmp_path, "a.odt", make_odf(f"<office:text>{table}</office:text>"))
    read(tmp_path, "a.xlsx", make_xlsx({"A": [[word, 1] for word in words[:20_000]]}))
    read(tmp_path, "a.pptx", make_pptx([make_shape(word) for word in words[:500]]))
    assert time.process_time() - start < 10


def test_labels_of_a_drawing_on_a_slide_are_one_unit(tmp_path: Path) -> None:
    def shape(text: str) -> str:
        return f"<p:sp><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"

    texts = ("Lamp", "A", "Oil tank", "Lamp", "The lamp is lit.", "Why?")
    document = read(tmp_path, "a.pptx", make_pptx(["".join(map(shape, texts))]))
    assert [text for _, text in shown(document)] == ["The lamp is lit.", "Why?", "Lamp, Oil tank"]
