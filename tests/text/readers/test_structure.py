"""The context of a sentence: the path of headings, the lead-in of a list, the question of a FAQ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askline.text.readers import iter_sentences

from .samples import check, lines, make_docx, make_odf, make_pdf, read, shown

STYLES = "".join(
    f'<w:style w:styleId="H{level}"><w:name w:val="heading {level}"/></w:style>'
    for level in (1, 2, 3)
)


def _docx(*paragraphs: tuple[str, str]) -> bytes:
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    return make_docx(body, word_styles=f'<w:styles xmlns:w="w">{STYLES}</w:styles>')


def _notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "markdown", "source": [cell]} for cell in cells]})


SECTIONS: dict[str, str | bytes] = {
    "a.md": "# Guide\n\n## Install\n\n### Linux\n\nUse apt.\n\n## Run\n\nStart it.\n",
    "b.md": "Guide\n=====\n\nInstall\n-------\n\n### Linux\n\nUse apt.\n\nRun\n---\n\nStart it.\n",
    "a.html": "<h1>Guide</h1><h2>Install</h2><h3>Linux</h3><p>Use apt.<h2>Run</h2><p>Start it.",
    "a.rst": (
        "=====\nGuide\n=====\n\nInstall\n=======\n\nLinux\n-----\n\nUse apt.\n\n"
        "Run\n===\n\nStart it.\n"
    ),
    "a.adoc": "= Guide\n\n== Install\n\n=== Linux\n\nUse apt.\n\n== Run\n\nStart it.\n",
    "b.adoc": (
        "Guide\n=====\n\nInstall\n-------\n\nLinux\n~~~~~\n\nUse apt.\n\nRun\n---\n\nStart it.\n"
    ),
    "a.org": "* Guide\n** Install\n*** Linux\nUse apt.\n** Run\nStart it.\n",
    "a.tex": (
        "\\chapter{Guide}\n\\section{Install}\n\\subsection{Linux}\nUse apt.\n\n"
        "\\section{Run}\nStart it.\n"
    ),
    "a.ipynb": _notebook(
        "# Guide\n\n## Install\n", "### Linux\n\nUse apt.\n", "## Run\n\nStart it."
    ),
    "a.docx": _docx(
        ("H1", "Guide"),
        ("H2", "Install"),
        ("H3", "Linux"),
        ("", "Use apt."),
        ("H2", "Run"),
        ("", "Start it."),
    ),
    "a.pdf": make_pdf(
        [
            [
                *lines("Guide", size=24, top=800),
                *lines("Install", size=18, top=750),
                *lines("Linux", size=14, top=700),
                *lines("Use apt, which is the usual way to install it.", top=650),
                *lines("Run", size=18, top=600),
                *lines("Start it.", top=550),
            ]
        ]
    ),
}


@pytest.mark.parametrize("name", SECTIONS)
def test_every_sentence_knows_the_path_of_headings_above_it(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, name, SECTIONS[name])
    found = {document.text[s.start : s.end][:7]: s for s in iter_sentences(document)}
    assert found["Use apt"].headings == ("Guide", "Install", "Linux")
    assert found["Use apt"].heading == "Linux"
    assert found["Start i"].headings == ("Guide", "Run")
    assert found["Linux"].headings == ("Guide", "Install")
    check(document)


def test_manual_pages_have_sections_and_subsections(tmp_path: Path) -> None:
    source = ".TH X 1\n.SH OPTIONS\n.SS Output\nPrints less.\n.SH FILES\nNone is read.\n"
    found = list(iter_sentences(read(tmp_path, "a.1", source)))
    assert [s.headings for s in found if s.kind == "sentence"] == [
        ("OPTIONS", "Output"),
        ("FILES",),
    ]


def test_a_level_that_is_left_out_does_not_end_the_section(tmp_path: Path) -> None:
    source = "# A\n\n#### D\n\nOne.\n\n## B\n\nTwo.\n\n# E\n\nThree.\n"
    found = [s.headings for s in iter_sentences(read(tmp_path, "a.md", source))]
    assert [path for path in found if len(path) > 0][1:] == [("A", "D"), ("A",), ("A", "B"), ("E",)]


def test_the_title_of_a_row_is_above_the_headings_of_its_text(tmp_path: Path) -> None:
    document = read(tmp_path, "a.csv", "title,text\nLamps,It is lit.\n,It is dark.\n")
    assert [s.headings for s in iter_sentences(document)] == [("Lamps",), ()]


def test_rules_and_other_lines_without_letters_are_no_sentences(tmp_path: Path) -> None:
    document = read(tmp_path, "a.txt", "One.\n\n-----\n\n* * *\n\n____\n\nTwo.\n")
    assert shown(document) == [("sentence", "One."), ("sentence", "Two.")]


PLAIN_LIST = "You can install it with:\n\n- apt on Debian\n  and Ubuntu\n- brew\n\nThen start it.\n"


def test_items_of_a_plain_list_keep_their_lead_in(tmp_path: Path) -> None:
    document = read(tmp_path, "a.txt", PLAIN_LIST)
    lead_in = "You can install it with:"
    assert [s.lead_in for s in iter_sentences(document)] == ["", lead_in, lead_in, ""]


def test_questions_and_answers_are_not_joined(tmp_path: Path) -> None:
    source = "Q: Why is it slow?\nA: It reads all files.\nThen it sorts.\n\nQ. Is it free? Yes.\n"
    document = read(tmp_path, "a.txt", source)
    found = [(s.kind, document.text[s.start : s.end], s.heading) for s in iter_sentences(document)]
    assert found == [
        ("heading", "Why is it slow?", ""),
        ("sentence", "It reads all files.", "Why is it slow?"),
        ("sentence", "Then it sorts.", "Why is it slow?"),
        ("heading", "Is it free?", ""),
        ("sentence", "Yes.", "Is it free?"),
    ]
    check(document)


def test_a_question_stands_below_its_section(tmp_path: Path) -> None:
    source = "# FAQ\n\nQ: Why?\n\nA: Because.\n\n## More\n\nA. Smith wrote it.\n"
    found = list(iter_sentences(read(tmp_path, "a.md", source)))
    assert [s.headings for s in found] == [(), ("FAQ",), ("FAQ", "Why?"), ("FAQ",), ("FAQ", "More")]


def test_a_document_of_code_alone_is_split_like_text(tmp_path: Path) -> None:
    code = "```\nThe first line.\nAnd a second.\n```\n"
    assert shown(read(tmp_path, "a.md", f"# Top\n\n{code}")) == [
        ("heading", "Top"),
        ("sentence", "The first line."),
        ("sentence", "And a second."),
    ]
    assert shown(read(tmp_path, "a.md", f"Text.\n\n{code}"))[1][0] == "code"


LISTS = {
    "a.rst": "You can use:\n\n- apt, with:\n\n  * Debian\n\n  and more\n- brew\n\nEnd.\n",
    "a.adoc": "You can use:\n\n* apt, with:\n** Debian\n+\nand more\n* brew\n\nEnd.\n",
    "a.org": "You can use:\n- apt, with:\n  - Debian\n- brew\n\nEnd.\n",
    "a.tex": (
        "You can use:\n\\begin{itemize}\n\\item apt, with:\n\\begin{itemize}\n\\item Debian\n"
        "\\end{itemize}\n\\item brew\n\\end{itemize}\nEnd.\n"
    ),
    "a.html": "<p>You can use:<ul><li>apt, with:<ul><li>Debian</ul><li>brew</ul><p>End.",
}


@pytest.mark.parametrize("name", LISTS)
def test_list_items_keep_their_lead_in(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, name, LISTS[name])
    found = {document.text[s.start : s.end]: s.lead_in for s in iter_sentences(document)}
    found.pop("and more", None)
    assert found == {
        "You can use:": "",
        "apt, with:": "You can use:",
        "Debian": "apt, with:",
        "brew": "You can use:",
        "End.": "",
    }
    check(document)


DEFINITIONS = {
    "a.rst": "Limits\n    They are low.\n",
    "a.adoc": "Limits:: They are low.\n",
    "a.org": "- Limits :: They are low.\n",
    "a.tex": "\\begin{description}\\item[Limits] They are low.\\end{description}\n",
    "a.md": "Limits\n: They are low.\n",
    "a.html": "<dl><dt>Limits<dd>They are low.</dl>",
    "a.1": ".TH X 1\n.SH NAME\n.TP\nLimits\nThey are low.\n",
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_term_and_its_meaning_are_one_sentence(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, name, DEFINITIONS[name])
    assert shown(document)[-1] == ("sentence", "Limits: They are low.")
    check(document)


QUESTIONS = {
    "a.rst": "**Is it free?**\n\nYes, it is.\n",
    "b.rst": "Is it free?\n    Yes, it is.\n",
    "a.adoc": "*Is it free?*\n\nYes, it is.\n",
    "b.adoc": "[qanda]\nIs it free?:: Yes, it is.\n",
    "a.org": "*Is it free?*\n\nYes, it is.\n",
    "a.md": "__Is it free?__\n\nYes, it is.\n",
    "b.md": "Q: Is it free?\nA: Yes, it is.\n",
    "c.md": "## Is it free?\n\n**Answer:** Yes, it is.\n",
    "a.html": "<p><strong>Is it free?</strong><p>Yes, it is.",
    "a.txt": "Question 1: Is it free?\n\nAnswer: Yes, it is.\n",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_the_heading_of_its_answer(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, name, QUESTIONS[name])
    found = [(s.kind, document.text[s.start : s.end], s.heading) for s in iter_sentences(document)]
    assert found == [
        ("heading", "Is it free?", ""),
        ("sentence", "Yes, it is.", "Is it free?"),
    ]
    check(document)


@pytest.mark.parametrize(
    ("name", "source", "texts"),
    [
        ("a.adoc", "* xref:a.adoc[]\n* xref:b.adoc#c[The C]\n* <<d>>\n\nText.\n", ["Text."]),
        ("a.adoc", "include-code::Main[]\n\nText.\n", ["Text."]),
        ("a.adoc", "Use javadoc:org.x.Map[format=annotation] here.\n", ["Use org.x.Map here."]),
        ("a.adoc", "See {url-docs}/org.x.Map for more.\n", ["See org.x.Map for more."]),
        ("a.adoc", "Get /users/{id} now.\n", ["Get /users/{id} now."]),
        ("a.org", "- [[#install][Install]]\n- [[*Use][Use]]\n\nText.\n", ["Text."]),
        ("a.org", "- [[https://x.org][X]]\n", ["X"]),
    ],
)
def test_links_to_other_pages_and_includes_are_left_out(
    tmp_path: Path, name: str, source: str, texts: list[str]
) -> None:
    document = read(tmp_path, name, source)
    assert [text for _, text in shown(document)] == texts
    check(document)


def test_a_long_row_of_a_table_keeps_its_name(tmp_path: Path) -> None:
    text = "It is the first sentence of a long cell. " * 15
    source = (
        f"| Name | Type | Use |\n|---|---|---|\n| path | text | {text}|\n| id | text | A. B. |\n"
    )
    document = read(tmp_path, "a.md", source)
    found = [(s.kind, document.text[s.start : s.end], s.lead_in) for s in iter_sentences(document)]
    assert found[1:3] == [
        ("row", "path\ntext", ""),
        ("cell", "It is the first sentence of a long cell.", "path"),
    ]
    assert found[-1] == ("row", "id\ntext\nA. B.", "")
    check(document)


def test_underlined_lines_of_plain_text_are_headings(tmp_path: Path) -> None:
    source = (
        "=======\nManual\n=======\n\nIt is short.\n\nInstall\n-------\nUse apt.\n\n"
        "Name   Age\n----------\nAnn    41\n\n- item\n------\n\n1.2.3. A number.\n\n"
        "Run (2015)\r\n==\r\nStart it.\n"
    )
    document = read(tmp_path, "a.txt", source)
    found = {document.text[s.start : s.end]: s for s in iter_sentences(document)}
    assert [text for text, s in found.items() if s.kind == "heading"] == [
        "Manual",
        "Install",
        "Run (2015)",
    ]
    assert found["It is short."].headings == ("Manual",)
    assert found["Use apt."].headings == ("Manual", "Install")
    assert found["Start it."].headings == ("Run (2015)",)
    assert "1.2.3. A number." in found
    check(document)


def test_nested_lists_of_plain_text_have_their_own_lead_ins(tmp_path: Path) -> None:
    source = (
        "News:\n\n* Printing:\n  - Fix a crash\n  - Add a page\n* Files:\n  - Sort them\n* Docs\n"
    )
    document = read(tmp_path, "a.txt", source)
    found = {document.text[s.start : s.end]: s.lead_in for s in iter_sentences(document)}
    assert found["Printing:"] == "News:"
    assert found["Add a page"] == "Printing:"
    assert found["Files:"] == "News:"
    assert found["Sort them"] == "Files:"
    assert found["Docs"] == "News:"


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.md", "**Default:**\n\nIt is 5.\n"),
        ("a.rst", "**Default:**\n\nIt is 5.\n"),
        ("a.html", "<p><b>Default:</b><p>It is 5."),
    ],
)
def test_a_label_in_bold_type_is_not_a_heading(tmp_path: Path, name: str, source: str) -> None:
    found = list(iter_sentences(read(tmp_path, name, source)))
    assert [(s.kind, s.heading) for s in found] == [("sentence", "")] * 2


@pytest.mark.parametrize(
    ("name", "source", "texts"),
    [
        ("a.adoc", "Edit linkman:ups.conf[5] first.\n", ["Edit ups.conf(5) first."]),
        ("a.org", "See the {{{man-link(mu,1)}}} page. {{{version}}}\n", ["See the mu(1) page."]),
        (
            "a.org",
            "[[https://a.b][https://a.b/x.svg]]\n\nRun mu [\u200bX\u200b].\n",
            ["Run mu [X]."],
        ),
        (
            "a.html",
            "<p>BEGIN;<br>SELECT a;<br>... 9 lines<br>END;</p><p>Oil,<br>light;</p><p>It.</p>",
            ["BEGIN;\nSELECT a;\n... 9 lines\nEND;", "Oil,\nlight;", "It."],
        ),
        ("a.txt", "So:\n\nTable of Contents\n\n2.1. Oil\n\nIt burns.\n", ["So:", "It burns."]),
        ("a.py", '"""See `the lamp <http://a.b/c>`_ of `it`_."""\n', ["See the lamp of it."]),
        (
            "a.py",
            '"""Text here.\n\n.. [1] Ann (2019), the first.\n.. [2] Bob, the other.\n"""\n',
            ["Text here.", "[1] Ann (2019), the first.", "[2] Bob, the other."],
        ),
        ("a.md", "oil: 5\\\nThe oil.\n", ["oil: 5", "The oil."]),
        ("a.py", "# (LAMP, 'oil') : (\n# The lamp is lit.\n", ["The lamp is lit."]),
        (
            "a.1",
            ".SH A\nbe verbose (use --verbose=n``, at most 2), as ``quiet''\n",
            ["A", "be verbose (use --verbose=n, at most 2), as ``quiet''"],
        ),
        ("a.rst", "It makes an _empty_ lamp, see lamp_.\n", ["It makes an empty lamp, see lamp."]),
        ("a.org", "The `*' card, or the `*' mark.\n", ["The `*' card, or the `*' mark."]),
        (
            "a.rst",
            "Text.\n\n.. function:: go(x)\n\n   :param x: where\n\nReturns `~a.b.Lamp`.\n",
            ["Text.", "go(x)", "x: where", "Returns Lamp."],
        ),
        (
            "a.yaml",
            "notes:\n  - Use ``wait`` and `stop` here.\n",
            ["notes", "Use wait and stop here."],
        ),
        (
            "a.1",
            ".SH NAME\nlamp\n.SH FILES\nText.\n.TP\nalone\n.PP\nSee\n.UR http://a.b/\n.UE .\n",
            ["NAME", "lamp", "FILES", "Text.", "alone", "See http://a.b/."],
        ),
        (
            "a.txt",
            "Guide\n\n  Table of Contents\n\n  1. Lamps\n\n  1.1. Oil\n\n  2. Light\n\nText.\n",
            ["Guide", "Text."],
        ),
        (
            "a.txt",
            "Contents\n\n1. A\n\n2. B\n\n3. C\n\n1. A\n\n   It is lit.\n\nNote\n\n   See.\n",
            ["1. A", "It is lit.", "See."],
        ),
        (
            "a.adoc",
            ":Author Initials: AB\n\nText.\n\n+------+\n| Lamp |\n+------+\n\nMore. [#12]\n",
            ["Text.", "+------+\n| Lamp |\n+------+", "More. [#12]"],
        ),
        (
            "a.md",
            "3.1. [Oil](#oil)\n\n|![A](a.png)|![B](b.png)|\n\nSee [it](\n  http://a.b).\n",
            ["See it."],
        ),
        ("a.md", "|a\t|b\t|\n|---\t|---\t|\n|c\t|d\t|\n", ["a\nb", "c\nd"]),
        ("a.1", '.SH The """oil""" lamp\n.I """max""" .\n', ['The "oil" lamp', '"max" .']),
        (
            "a.js",
            "/** **Oil** is [here](https://a.b/c), **never** there. */\n",
            ["Oil is here, never there."],
        ),
        (
            "a.log",
            "10:00 Retrying. Already tried twice. Skip.\n",
            ["10:00 Retrying. Already tried twice. Skip."],
        ),
        (
            "a.yaml",
            "notes:\n  - |\n    Use ``wait\n    long`` here.\n",
            ["notes", "Use wait\nlong here."],
        ),
        (
            "a.html",
            "<p>Oil.<a class='footnote-reference' href='#n'>1</a> It is lit."
            "<sup class='footnote'>[2]</sup></p><div><span epub:type='pagebreak'>9</span></div>",
            ["Oil.", "It is lit."],
        ),
        (
            "a.html",
            "<p>So:</p><p><tt>a&nbsp;&nbsp;1<br>b&nbsp;2</tt></p><p><tt>lamp -x</tt></p>",
            ["So:", "a\xa0\xa01\nb\xa02", "lamp -x"],
        ),
        (
            "a.txt",
            "Contents\n\nIt has oil. It has a wick.\n",
            ["Contents", "It has oil.", "It has a wick."],
        ),
        (
            "a.html",
            "<div class='tagline'>Fast.</div><p>Run</p><pre>a()</pre><p>and</p><pre>b()</pre>",
            ["Run", "a()", "b()"],
        ),
        ("a.html", "<p>Text.</p><p>9</p><p>:-D</p><p>42 lamps</p>", ["Text.", "42 lamps"]),
        (
            "a.py",
            "#: The name.\n#: It is short.\nname = 1\n# PUBLIC API\n# `~a.b.Lamp`, `.Oil` shine.\n",
            ["The name.", "It is short.", "Lamp, Oil shine."],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 9 else "",
)
def test_marks_and_fragments_are_left_out(
    tmp_path: Path, name: str, source: str, texts: list[str]
) -> None:
    document = read(tmp_path, name, source)
    assert [text for _, text in shown(document)] == texts
    check(document)


def test_a_paragraph_of_inline_code_is_code(tmp_path: Path) -> None:
    document = read(tmp_path, "a.md", 'It returns:\n\n`{"id": 1}`\n\nor\n\n`name`\n')
    assert shown(document) == [
        ("sentence", "It returns:"),
        ("code", '{"id": 1}'),
        ("sentence", "name"),
    ]
    check(document)


def test_a_signature_and_a_term_alone_are_code(tmp_path: Path) -> None:
    kinds = {
        text: kind
        for name, source in (
            ("a.rst", "Text.\n\n.. function:: go(x)\n\n   :param x: where\n"),
            ("a.1", ".SH FILES\nText.\n.TP\nalone\n.PP\nMore.\n"),
        )
        for kind, text in shown(read(tmp_path, name, source))
    }
    assert (kinds["go(x)"], kinds["alone"]) == ("code", "code")


@pytest.mark.parametrize("style", ["Example", "Source_20_Code", "P1"])
def test_code_and_contents_of_opendocument_are_known_by_their_styles(
    tmp_path: Path, style: str
) -> None:
    automatic = (
        '<office:automatic-styles><style:style style:name="P1" '
        'style:parent-style-name="Preformatted_20_Text"/><style:style style:name="P2" '
        'style:parent-style-name="Contents_20_1"/></office:automatic-styles>'
    )
    body = (
        '<text:p text:style-name="P2">1 Lamps 5</text:p><text:p>Text is here.</text:p>'
        f'<text:p text:style-name="{style}">lamp = on()</text:p>'
    )
    document = read(tmp_path, "a.odt", make_odf(body, automatic_styles=automatic))
    assert shown(document) == [("sentence", "Text is here."), ("code", "lamp = on()")]


def test_code_of_docx_is_known_by_its_style(tmp_path: Path) -> None:
    styles = (
        '<w:styles xmlns:w="w"><w:style w:styleId="S"><w:name w:val="Source Code"/></w:style>'
        '<w:style w:styleId="T"><w:name w:val="Mine"/><w:basedOn w:val="S"/></w:style></w:styles>'
    )
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in (("", "Text."), ("S", "a = 1"), ("T", "b = 2"))
    )
    document = read(tmp_path, "a.docx", make_docx(body, word_styles=styles))
    assert shown(document) == [("sentence", "Text."), ("code", "a = 1"), ("code", "b = 2")]


def test_a_rule_ends_the_section_of_a_label(tmp_path: Path) -> None:
    source = "<h1>Lamps</h1><p><b>Oil lamps</b></p><p>They smell.</p><hr><p>All are lit.</p>"
    sentences = list(iter_sentences(read(tmp_path, "a.html", source)))
    paths = [each.context.headings for each in sentences if each.kind == "sentence"]
    assert paths == [("Lamps", "Oil lamps"), ("Lamps",)]


def test_headings_of_plain_text(tmp_path: Path) -> None:
    source = (
        "Guide\n\n  Chapter 1. Lamps\n\nThey are lit.\n\n2.1. Oil\n\nIt burns.\n\n"
        "SAFETY FIRST\n\nTake care.\n\n"
        "1. Open it\n\n2. Fill it\n\nOK\n\nIt shines.\n"
    )
    document = read(tmp_path, "a.txt", source)
    found = [
        (s.headings, document.text[s.start : s.end])
        for s in iter_sentences(document)
        if s.kind != "heading"
    ]
    lamps, oil, safety = "Chapter 1. Lamps", "2.1. Oil", "SAFETY FIRST"
    assert found == [
        (
            (
                "Guide",
                lamps,
            ),
            "They are lit.",
        ),
        (("Guide", lamps, oil), "It burns."),
        (("Guide", lamps, safety), "Take care."),
        (("Guide", lamps, safety), "1. Open it"),
        (("Guide", lamps, safety), "2. Fill it"),
        (("Guide", lamps, safety), "OK"),
        (("Guide", lamps, safety), "It shines."),
    ]
    check(document)


def test_a_named_element_of_xml_data_is_a_section(tmp_path: Path) -> None:
    source = (
        "<system><name>Sun</name><mass>1</mass><planet><name>Mars</name><moon><name>Deimos</name>"
        "</moon><mass>2</mass></planet><age>5</age></system>"
    )
    document = read(tmp_path, "a.xml", source)
    found = [
        (s.headings, document.text[s.start : s.end])
        for s in iter_sentences(document)
        if s.kind != "heading"
    ]
    assert found == [
        (("Sun",), "mass: 1"),
        (("Sun", "Mars"), "name: Deimos"),
        (("Sun", "Mars"), "mass: 2"),
        (("Sun",), "age: 5"),
    ]
    assert document.title == "Sun"
    check(document)


TABLE = """\
   +---------------+
   | Key  | Value  |
   |------+--------|
   | oil  | It is  |
   |      | burnt. |
   |------+--------|
   | two  | Other  |
   | rows | ones   |
   +---------------+
"""


def test_a_drawn_table_of_plain_text_has_rows(tmp_path: Path) -> None:
    document = read(tmp_path, "a.txt", f"It is so:\n\n{TABLE}\nThat is all.\n")
    assert shown(document) == [
        ("sentence", "It is so:"),
        ("columns", "Key\nValue"),
        ("row", "oil\nIt is burnt."),
        ("row", "two\nOther\nrows\nones"),
        ("sentence", "That is all."),
    ]
    check(document)


def test_a_sentence_around_an_example_of_code_is_one_unit(tmp_path: Path) -> None:
    source = "Run\n\n```\nmake all\n```\n\nto build it. It is {}\n\n```\nx\n```\n\nand more.\n"
    document = read(tmp_path, "a.md", source.format("done."))
    assert shown(document) == [
        ("sentence", "Run\nmake all\nto build it."),
        ("sentence", "It is done."),
        ("code", "x"),
        ("sentence", "and more."),
    ]
    check(document)
    document = read(tmp_path, "b.md", source.format("this:"))
    assert shown(document)[1:] == [("sentence", "It is this:\nx\nand more.")]
    check(document)
    document = read(tmp_path, "c.md", source.replace("all", "all\nls").format("done."))
    assert shown(document)[0] == ("sentence", "Run\nmake all\nls\nto build it.")
    check(document)
    long = source.replace("all", "all\n" + "echo\n" * 200).format("done.")
    document = read(tmp_path, "d.md", long)
    assert shown(document)[0] == ("sentence", "Run")
    check(document)


def test_a_reference_in_brackets_belongs_to_its_sentence(tmp_path: Path) -> None:
    document = read(tmp_path, "a.md", "It is mended. [issue #28]\n\n[Keep] this. [It] goes on.\n")
    assert [text for _, text in shown(document)] == [
        "It is mended. [issue #28]",
        "[Keep] this.",
        "[It] goes on.",
    ]
    check(document)


ADDRESSES = {
    "a.txt": "Read this: https://a.org/b\n\ngit://a.org\n\nIt is old. <x@a.org>\n\n[1] www.a.org\n",
    "a.md": "Read this: https://a.org/b\n\nhttps://a.org\n\nIt is old. x@a.org\n\nwww.a.org\n",
    "a.html": "<p>Read this: https://a.org/b<p>https://a.org<p>It is old. x@a.org<p>www.a.org",
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_alone_is_no_candidate(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, name, ADDRESSES[name])
    assert [kind for kind, _ in shown(document)] == ["sentence", "code", "sentence", "code"]
    check(document)


def test_addresses_below_a_colon_belong_to_its_sentence(tmp_path: Path) -> None:
    source = "Get it here:\n\n* https://a.org\n* https://b.org\n\nIt is free.\n"
    document = read(tmp_path, "a.md", source)
    assert shown(document) == [
        ("sentence", "Get it here:\nhttps://a.org\nhttps://b.org"),
        ("sentence", "It is free."),
    ]
    check(document)


@pytest.mark.parametrize("kind", ["md", "rst", "adoc", "org", "html"])
def test_a_statement_is_code_and_a_list_in_prose_is_not(tmp_path: Path, kind: str) -> None:
    items = ["SELECT oil FROM lamps;", "int light(int lamp);", "lamp on > /dev/null"]
    prose = ["call light(2);", "a lamp > a torch;"]
    mark, close = ("<li>", "") if kind == "html" else ("- ", "\n")
    source = "".join(f"{mark}{item}{close}" for item in [*items, *prose])
    source = f"<ul>{source}</ul>" if kind == "html" else f"{source}\n"
    kinds = [kind for kind, _ in shown(read(tmp_path, f"a.{kind}", source))]
    assert kinds == ["code"] * 3 + ["sentence"] * 2


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.rst", "* ``make all -j``\n* ``make``\n* ``a b`` or ``c d``\n"),
        ("a.adoc", "* `make all -j`\n* `make`\n* `a b` or `c d`\n"),
        ("a.org", "- ~make all -j~\n- ~make~\n- =a b= or =c d=\n"),
    ],
)
def test_an_item_that_is_a_literal_of_words_is_code(tmp_path: Path, name: str, source: str) -> None:
    assert shown(read(tmp_path, name, source)) == [
        ("code", "make all -j"),
        ("sentence", "make"),
        ("sentence", "a b or c d"),
    ]


def test_a_verse_with_a_paragraph_per_line_is_one_unit(tmp_path: Path) -> None:
    verse = "<p>The lamp is lit,<p>the night is long<p>And ships go by;<p>So be it.<p>Next, a word."
    document = read(tmp_path, "a.html", verse)
    assert [text for _, text in shown(document)] == [
        "The lamp is lit,\nthe night is long\nAnd ships go by;\nSo be it.",
        "Next, a word.",
    ]
    check(document)
    roles = "<p>Jane Doe<p>Editor<p>The first,<p>" + "a long line of prose " * 5
    assert len(shown(read(tmp_path, "b.html", roles))) == 4


def test_a_sentence_is_joined_over_code_only_if_it_goes_on(tmp_path: Path) -> None:
    source = "It is like this:\n\n```\nx\n```\n\nlampd lights the lamp.\n"
    assert len(shown(read(tmp_path, "a.md", source))) == 3
    source = source.replace("this:", "this")
    assert len(shown(read(tmp_path, "b.md", source))) == 1
    source = source.replace("lampd lights", "lampd = on or")
    assert len(shown(read(tmp_path, "c.md", source))) == 3


def test_a_bracket_around_an_example_is_closed_in_its_sentence(tmp_path: Path) -> None:
    source = (
        "It logs all (e.g.\n\n```\nlit\n```\n\n) of it.\n\nSo (it) is.\n\n```\nx\n```\n\n) odd\n"
    )
    document = read(tmp_path, "a.md", source)
    assert [text for _, text in shown(document)] == [
        *("It logs all (e.g.\nlit\n) of it.", "So (it) is.", "x", ") odd")
    ]
    check(document)


def test_the_marks_of_notes_are_left_out(tmp_path: Path) -> None:
    page = "<p>*That part of the sea is deep.<p>*pOp is set.<p>*Attribute access*: it is slow."
    assert [text for _, text in shown(read(tmp_path, "a.html", page))] == [
        *("That part of the sea is deep.", "*pOp is set.", "*Attribute access*: it is slow.")
    ]
    source = "Use the lamp.\n\n^[1] see the manual\n"
    assert shown(read(tmp_path, "a.txt", source))[-1] == ("sentence", "see the manual")


def test_a_sentence_that_a_list_completes_is_its_lead_in(tmp_path: Path) -> None:
    source = "The lamps in the tower\n\n* must be lit, and\n* must be clean.\n\nSo\n\n* be it\n"
    document = read(tmp_path, "a.md", source)
    found = {document.text[s.start : s.end]: s.lead_in for s in iter_sentences(document)}
    assert found["must be clean."] == "The lamps in the tower"
    assert found["be it"] == ""
    check(document)


def test_numbers_of_notes_are_no_units(tmp_path: Path) -> None:
    page = "<p>[6] In spring, it was lit.<p>[option] is not set."
    assert [text for _, text in shown(read(tmp_path, "a.html", page))] == [
        *("In spring, it was lit.", "[option] is not set.")
    ]
    assert [
        text for _, text in shown(read(tmp_path, "a.txt", "It is lit.\n\n14\n\n2022-12-17\n"))
    ] == [*("It is lit.", "2022-12-17")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "Dentist: Dr. Klein\nPhone: 030 1234567\nWifi password: otter-42\n",
            ["Dentist: Dr. Klein", "Phone: 030 1234567", "Wifi password: otter-42"],
        ),
        (
            "2024-03-01 09:12 The backup started\n2024-03-01 09:40 It finished with warnings\n",
            ["2024-03-01 09:12 The backup started", "2024-03-01 09:40 It finished with warnings"],
        ),
        ("Milk\nTwelve eggs\nBread from the shop\nOil\n", None),
        ("milk\ntwelve eggs\nbread from the shop\noil\n", None),
        ("[ ] Call the plumber\n[x] Pay the rent in May\n", None),
        ("Item    Price\nTea      3.20\nCoffee   4.10\n", None),
        ("Opening hours\nMonday 9 to 17\nTuesday 10 to 18\n", None),
        (
            "2. Returns\n2.1 Goods may be returned within 30 days of delivery if\nunused.\n",
            [
                "2. Returns",
                "2.1 Goods may be returned within 30 days of delivery if\nunused.",
            ],
        ),
        (
            "Gifts\nEmployees may accept gifts up to a value of 50 euros, and must report\n"
            "others.\n",
            [
                "Gifts",
                "Employees may accept gifts up to a value of 50 euros, and must report\nothers.",
            ],
        ),
    ],
)
def test_lines_of_plain_text_that_were_not_wrapped_are_sentences(
    tmp_path: Path, source: str, expected: list[str] | None
) -> None:
    document = read(tmp_path, "a.txt", source)
    assert [text for _, text in shown(document)] == (expected or source.splitlines())
    check(document)


@pytest.mark.parametrize(
    "source",
    [
        "The lamp was lit in the year 1850 and has burned since then, although the\n"
        "tower was rebuilt twice and its keeper left for the\nmainland",
        "Two roads diverged in a yellow wood,\nAnd sorry I could not travel both\n"
        "And be one traveler, long I stood\nAnd looked down one as far as I could",
        "This is a note that I typed by hand and it has lines\nof quite different lengths because "
        "I press\nenter whenever I feel like it, so the text\nis ragged",
        "The service starts with the system,\nunless it is disabled in the settings",
        "The oxygen of the air, which most of the animals that live on land breathe all day, is O\n"
        "2, and its other form, which is rare and smells, is called ozone and has the formula O\n"
        "3, while the gas that plants take out of the air and animals give back to it is CO\n2 in "
        "all of the books that were read for this page, and in those that were not read, too",
        "The rule is simple: what was\nopened must be closed, and then:\nlight the lamp",
    ],
)
def test_wrapped_lines_of_plain_text_are_one_sentence(tmp_path: Path, source: str) -> None:
    document = read(tmp_path, "a.txt", source)
    assert [text for _, text in shown(document)] == [source]
