"""Builders of tiny files, and checks that hold for every document."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from askline.errors import DataError
from askline.text.readers import ParsedDocument, iter_sentences, read_document

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
Row = tuple[float, float, float, str]
"""Type size, left, baseline, text."""


def read(folder: Path, name: str, content: str | bytes) -> ParsedDocument:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_document(path)


def refusal(folder: Path, name: str, content: str | bytes) -> str:
    """The error message for a file that cannot be read, without its path."""
    try:
        read(folder, name, content)
    except DataError as error:
        [problem] = error.problems
        assert problem.path == str(folder / name)
        return f"{problem.line}: {problem.message}" if problem.line else problem.message
    raise AssertionError("the file was read")


def shown(document: ParsedDocument) -> list[tuple[str, str]]:
    """The kind and text of every sentence."""
    return [(s.kind, document.text[s.start : s.end]) for s in iter_sentences(document)]


def originals(document: ParsedDocument) -> list[str]:
    """The slice of the file for every sentence."""
    assert document.encoding
    original = Path(document.path).read_bytes().decode(document.encoding)
    spans = [document.span(s.start, s.end) for s in iter_sentences(document)]
    return [original[span[0] : span[1]] for span in spans if span]


def check(document: ParsedDocument) -> None:
    """Check the order of sentences, blocks, places and offsets."""
    end = 0
    for sentence in iter_sentences(document):
        piece = document.text[sentence.start : sentence.end]
        assert piece == piece.strip() != ""
        assert end <= sentence.start < sentence.end <= len(document.text)
        end = sentence.end
    end = 0
    for block in document.blocks:
        assert end <= block.start < block.end <= len(document.text)
        end = block.end
    numbers = [document.place(offset).number for offset in range(len(document.text))]
    assert numbers == sorted(numbers)
    assert all(1 <= number <= len(document.starts) for number in numbers)
    if document.encoding:
        spans = [document.span(at, at + 1) or (0, 0) for at in range(len(document.text))]
        assert all(start <= stop for start, stop in spans)
        assert all(spans[at][1] <= spans[at + 1][0] for at in range(len(spans) - 1))


def lines(*texts: str, size: float = 11, top: float = 700, step: float = 14) -> list[Row]:
    """The rows of one paragraph."""
    return [(size, 72, top - number * step, text) for number, text in enumerate(texts)]


def make_pdf(
    pages: Sequence[Sequence[Row]],
    *,
    title: str = "",
    locked: bool = False,
    typewriter: Sequence[str] = (),
) -> bytes:
    """A minimal PDF; a locked one has a password. `typewriter` has the texts set in Courier."""
    first = 5
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        stream = "\n".join(
            f"BT /F{2 if text in typewriter else 1} {size} Tf {left} {baseline} Td ({text}) Tj ET"
            for size, left, baseline, text in page
        )
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R"
            f" /F2 4 0 R >> >> /Contents {first + 2 * number + 1} 0 R >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    objects.append(f"<< /Title ({title}) >>")
    body = "%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    lock = f"/Encrypt << /Filter /Standard /V 1 /R 2 /O <{'11' * 32}> /U <{'22' * 32}> /P -4 >>"
    trailer = f"/Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R /ID [<33> <33>]"
    body += (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer\n<< {trailer} {lock if locked else ''} >>\nstartxref\n{len(body)}\n%%EOF\n"
    )
    return body.encode("cp1252")


def make_docx(body: str, **parts: str) -> bytes:
    """A DOCX with this body XML and other parts by names such as `word_styles`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        )
        for name, content in parts.items():
            archive.writestr(name.replace("_", "/", 1) + ".xml", content)
    return packed.getvalue()


def make_slow_pdf(operators: int = 1_000_000) -> bytes:
    """A PDF of less than a kilobyte, compressed twice, whose page takes ten seconds to read."""
    page = b"BT/F1 1 Tf " + b"(ab)Tj 0 1 Td " * (operators // 2) + b"ET"
    stream = zlib.compress(zlib.compress(page, 9), 9)
    head = (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>endobj\n"
        b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
    )
    contents = (
        b"4 0 obj<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%b\nendstream endobj\n"
        % (len(stream), stream)
    )
    return head + contents + b"trailer<</Root 1 0 R/Size 6>>\n%%EOF\n"


def make_zip(members: dict[str, str | bytes]) -> bytes:
    """A zip archive with these members."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def make_relations(targets: Sequence[tuple[str, str, str]]) -> str:
    """The relations of an office file: id, type and target of each."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    entries = "".join(
        f'<Relationship Id="{each}" Type="{kind}/{name}" Target="{target}"/>'
        for each, name, target in targets
    )
    return f"<Relationships>{entries}</Relationships>"


def make_pptx(slides: Sequence[str], *, notes: Sequence[str] = (), **members: str) -> bytes:
    """A PPTX whose slides have these shapes as XML, and notes for the first of them."""
    found: dict[str, str | bytes] = {
        "ppt/presentation.xml": "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst>"
        + "".join(
            f'<p:sldId id="{255 + number}" r:id="rId{number}"/>'
            for number in range(1, len(slides) + 1)
        )
        + "</p:sldIdLst></p:presentation>",
        # The names of the files are not in the order of the slides.
        "ppt/_rels/presentation.xml.rels": make_relations(
            [
                (f"rId{number}", "slide", f"slides/slide{len(slides) - number}.xml")
                for number in range(1, len(slides) + 1)
            ]
        ),
        **{name.replace("_", "/", 1) + ".xml": content for name, content in members.items()},
    }
    for number, shapes in enumerate(slides, 1):
        name = f"slide{len(slides) - number}.xml"
        found[f"ppt/slides/{name}"] = f"<p:sld xmlns:p='p' xmlns:a='a'>{shapes}</p:sld>"
        if number <= len(notes):
            relation = ("rId1", "notesSlide", f"../notesSlides/notes{number}.xml")
            found[f"ppt/slides/_rels/{name}.rels"] = make_relations([relation])
            found[f"ppt/notesSlides/notes{number}.xml"] = (
                f"<p:notes xmlns:p='p' xmlns:a='a'>{notes[number - 1]}</p:notes>"
            )
    return make_zip(found)


def make_shape(*paragraphs: str, kind: str = "body") -> str:
    """A shape of a slide; `title` is the kind of its title."""
    text = "".join(f"<a:p><a:r><a:t>{each}</a:t></a:r></a:p>" for each in paragraphs)
    return f'<p:sp><p:nvPr><p:ph type="{kind}"/></p:nvPr><p:txBody>{text}</p:txBody></p:sp>'


CellValue = str | float | bool | None


def make_xlsx(sheets: dict[str, Sequence[Sequence[CellValue]]], **members: str) -> bytes:
    """An XLSX with these sheets. A string that starts with `<c` is the XML of a cell."""
    strings: list[str] = []
    names, relations = [], []
    found: dict[str, str | bytes] = {}
    for number, (name, rows) in enumerate(sheets.items(), 1):
        names.append(f'<sheet name="{name}" sheetId="{number}" r:id="rId{number}"/>')
        relations.append((f"rId{number}", "worksheet", f"worksheets/sheet{number}.xml"))
        body = ""
        for row_number, row in enumerate(rows, 1):
            cells = ""
            for column, value in enumerate(row):
                place = f"{chr(65 + column)}{row_number}"
                if isinstance(value, str) and value.startswith("<c"):
                    cells += value
                elif isinstance(value, str):
                    cells += f'<c r="{place}" t="s"><v>{len(strings)}</v></c>'
                    strings.append(value)
                elif isinstance(value, bool):
                    cells += f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
                elif value is not None:
                    cells += f'<c r="{place}"><v>{value}</v></c>'
            body += f'<row r="{row_number}">{cells}</row>' if cells else ""
        found[f"xl/worksheets/sheet{number}.xml"] = (
            f"<worksheet><sheetData>{body}</sheetData></worksheet>"
        )
    texts = "".join(f"<si><t>{text}</t></si>" for text in strings)
    return make_zip(
        {
            "xl/workbook.xml": "<workbook xmlns:r='r'><sheets>"
            + "".join(names)
            + "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": make_relations(relations),
            "xl/sharedStrings.xml": f"<sst>{texts}</sst>",
            **{name.replace("_", "/", 1) + ".xml": content for name, content in members.items()},
            **found,
        }
    )


def make_odf(body: str, **members: str) -> bytes:
    """An OpenDocument file with this XML in `office:body`; members such as `meta`.

    `automatic_styles` is XML before the body.
    """
    styles = members.pop("automatic_styles", "")
    spaces = "".join(
        f' xmlns:{each}="{each}"'
        for each in ("office", "text", "table", "draw", "presentation", "dc", "style")
    )
    body = f"{styles}<office:body>{body}</office:body>"
    content = f"<office:document{spaces}>{body}</office:document>"
    return make_zip(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": content,
            **{name.replace("__", "/") + ".xml": text for name, text in members.items()},
        }
    )


def make_epub(chapters: dict[str, str], **members: str) -> bytes:
    """An EPUB with these HTML files in order; members such as `nav`, an HTML file, or `ncx`."""
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>'
        for name in chapters
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    if "nav" in members:
        items += (
            '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        )
        spine = f'<itemref idref="nav"/>{spine}'
    if "ncx" in members:
        items += '<item id="ncx" href="ncx.xhtml" media-type="application/x-dtbncx+xml"/>'
    return make_zip(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OEBPS/a.opf"/>'
            "</rootfiles></container>",
            "OEBPS/a.opf": '<package xmlns:dc="d"><metadata><dc:title>The tower</dc:title>'
            f"</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{f"OEBPS/{name}.xhtml": text for name, text in chapters.items()},
            **{
                ("META-INF/encryption.xml" if name == "encryption" else f"OEBPS/{name}.xhtml"): text
                for name, text in members.items()
            },
        }
    )
