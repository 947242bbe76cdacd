from __future__ import annotations

import io
import random
import time
import zipfile
from pathlib import Path

import pytest

from askline.errors import DataError
from askline.text.readers import iter_sentences, read_document

from .samples import WORD, check, make_docx, read, refusal, shown

STYLES = f"""<w:styles xmlns:w="{WORD}">
<w:style w:styleId="Titre1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="Titre1"/></w:style>
<w:style w:styleId="Normal"><w:name w:val="Normal"/></w:style></w:styles>"""


def p(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def test_paragraphs_headings_and_cells(tmp_path: Path) -> None:
    table = f"<w:tbl><w:tr><w:tc>{p('Year')}</w:tc><w:tc>{p('1931')}</w:tc></w:tr></w:tbl>"
    body = p("Bridges", "Titre1") + p("It was built. It fell.") + table + p("Next", "Mine") + p("x")
    document = read(tmp_path, "a.docx", make_docx(body, word_styles=STYLES))
    assert shown(document) == [
        ("heading", "Bridges"),
        ("sentence", "It was built."),
        ("sentence", "It fell."),
        ("row", "Year\n1931"),
        ("heading", "Next"),
        ("sentence", "x"),
    ]
    assert [s.heading for s in iter_sentences(document)] == ["", *["Bridges"] * 3, "", "Next"]
    assert str(document.place(document.text.index("1931"))) == "paragraph 4"
    assert document.span(0, 1) is None
    check(document)


def test_runs_tabs_breaks_and_hyphens(tmp_path: Path) -> None:
    body = "<w:p><w:r><w:t>The Anglo</w:t><w:noBreakHyphen/><w:t>Saxon</w:t><w:tab/></w:r>"
    body += "<w:r><w:t xml:space='preserve'> age</w:t><w:br/><w:t>ended.</w:t></w:r></w:p>"
    assert read(tmp_path, "a.docx", make_docx(body)).text == "The Anglo-Saxon\t age\nended.\n"


def test_deleted_moved_and_duplicated_text_is_ignored(tmp_path: Path) -> None:
    body = "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    body += "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"
    body += "<w:r><w:instrText>PAGE</w:instrText></w:r>"
    body += "<w:Fallback><w:r><w:t>twice</w:t></w:r></w:Fallback><w:r><w:t>Kept.</w:t></w:r></w:p>"
    assert read(tmp_path, "a.docx", make_docx(body)).text == "Kept.\n"


def test_text_box_is_a_separate_paragraph(tmp_path: Path) -> None:
    body = f"<w:p><w:r><w:t>Out</w:t></w:r><w:txbxContent>{p('Boxed.')}</w:txbxContent>"
    body += "<w:r><w:t>side.</w:t></w:r></w:p>"
    document = read(tmp_path, "a.docx", make_docx(body))
    assert [text for _, text in shown(document)] == ["Boxed.", "Outside."]


def test_title_and_footnotes(tmp_path: Path) -> None:
    core = '<c xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title> On  bridges </dc:title></c>'
    notes = f'<w:footnotes xmlns:w="{WORD}"><w:footnote>{p("A note.")}</w:footnote></w:footnotes>'
    content = make_docx(p("Text."), docProps_core=core, word_footnotes=notes)
    document = read(tmp_path, "a.docx", content)
    assert document.title == "On bridges"
    assert [text for _, text in shown(document)] == ["Text.", "A note."]


def archive(name: str, content: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr(name, content)
    return packed.getvalue()


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            archive("a.txt", "x"),
            "It is a zip archive without word/document.xml, so it is not a",
        ),
        (archive("word/document.xml", LAUGHS), "It declares a document type, as no DOCX file"),
        (archive("word/document.xml", OUTSIDE), "It declares a document type, as no DOCX file"),
        (archive("word/document.xml", "<x>"), "word/document.xml in it is damaged: no element"),
        (
            make_docx(p("Text."))[:-30],
            "It is not a DOCX file, or it is damaged or truncated. Get it again.",
        ),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", "It is a .doc file or has a password."),
        (make_docx(""), "It is empty or has no text. Leave it out."),
    ],
    ids=["zip", "laughs", "outside", "broken", "truncated", "old", "empty"],
)
def test_unreadable_docx_gives_the_reason(tmp_path: Path, content: bytes, message: str) -> None:
    assert refusal(tmp_path, "a.docx", content).startswith(message)


def test_a_tag_of_millions_of_bytes_is_refused_quickly(tmp_path: Path) -> None:
    value = random.Random(0).randbytes(18_000_000).hex()  # repeated characters fail by their ratio
    content = make_docx(f'<w:p w:a="{value}"/>' + p("Text."))
    start = time.process_time()
    message = refusal(tmp_path, "a.docx", content)
    assert "word/document.xml in it has a tag of more than 16,777,216 bytes" in message
    assert time.process_time() - start < 5


def test_a_file_of_empty_paragraphs_is_refused_quickly(tmp_path: Path) -> None:
    content = make_docx("<w:p></w:p>" * 10_000_000)
    start = time.process_time()
    message = refusal(tmp_path, "a.docx", content)
    assert "word/document.xml in it unpacks to more than 100 times its size" in message
    assert time.process_time() - start < 2, "refused by its stated size"


def test_deeply_nested_tables_take_linear_time(tmp_path: Path) -> None:
    depth = 20_000
    body = "<w:tbl>" * depth + p("Text.") * depth + "</w:tbl>" * depth
    start = time.process_time()
    assert len(shown(read(tmp_path, "a.docx", make_docx(body)))) == depth
    assert time.process_time() - start < 5


def test_a_long_namespace_address_is_not_repeated_per_element(tmp_path: Path) -> None:
    body = f'<w:body xmlns:v="{"x" * 1_000_000}">{"<v:p></v:p>" * 20_000}</w:body>{p("Text.")}'
    start = time.process_time()
    assert shown(read(tmp_path, "a.docx", make_docx(body))) == [("sentence", "Text.")]
    assert time.process_time() - start < 2


def test_zip_bomb_is_stopped_while_unpacking(tmp_path: Path) -> None:
    path = tmp_path / "bomb.docx"
    path.write_bytes(make_docx(p("x" * 3_000_000)))
    assert path.stat().st_size < 10_000
    with pytest.raises(DataError, match="unpacks to more than 1,000,000 bytes. Split it."):
        read_document(path, max_bytes=1_000_000)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_that_word_does_not_use_is_refused(tmp_path: Path, method: int) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as package:
        package.writestr("word/document.xml", "<w:document/>")
    assert refusal(tmp_path, "a.docx", packed.getvalue()).startswith("It is not a DOCX file, or")
