from __future__ import annotations

import html
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.text.readers import iter_sentences
from askline.text.readers.html import read_html

from .samples import check, originals, read, shown

PAGE = """<!DOCTYPE html>
<html><head><title>On &amp; under
 bridges</title><style>p { color: red }</style></head>
<body><script>if (a < b) document.write("<p>No.</p>")</script>
<!-- a comment <p>Not this.</p> -->
<template><p>Nor this.</p></template><noscript>Turn it on.</noscript>
<svg><title>Drawing</title><text>No.</text></svg>
<h1>Bridges</h1>
<p>The <b>old</b> bridge
   was built in&nbsp;1931. It cost &pound;5&#44;000 &lt;or more&gt;.</p>
<ul><li>wood<li>stone</ul>
<table><tr><td>Year<td>1931</table>
<pre>x = 1
  y = 2</pre><p>After.
</body></html>
"""


def test_page_gives_its_visible_sentences_only(tmp_path: Path) -> None:
    document = read(tmp_path, "a.html", PAGE)
    assert document.title == "On & under bridges"
    assert shown(document) == [
        ("heading", "Bridges"),
        ("sentence", "The old bridge was built in\xa01931."),
        ("sentence", "It cost £5,000 <or more>."),
        ("sentence", "wood"),
        ("sentence", "stone"),
        ("row", "Year\n1931"),
        ("code", "x = 1\n  y = 2"),
        ("sentence", "After."),
    ]
    check(document)


def test_offsets_slice_the_source_including_tags(tmp_path: Path) -> None:
    document = read(tmp_path, "a.html", PAGE)
    assert originals(document)[:4] == [
        "Bridges",
        "The <b>old</b> bridge\n   was built in&nbsp;1931.",
        "It cost &pound;5&#44;000 &lt;or more&gt;.",
        "wood",
    ]
    places = [document.place(s.start).number for s in iter_sentences(document)]
    assert places == [8, 9, 10, 11, 11, 12, 13, 14]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("a < b and c > d.", ["a < b and c > d."]),
        ("1 <2 is <b true", ["1 <2 is <b true"]),
        ("<p title=don't>One. It's</p>", ["One.", "It's"]),
        ('<a href="x>y">One</a> two.', ["One two."]),
        ("<h1>Title<p>Text.", ["Title", "Text."]),
        ("<p>One<br>two.<br><br>Three.", ["One\ntwo.", "Three."]),
        ("<p>One.<!-- never closed <p>Two.", ["One."]),
        ("<p>One.<script>never closed <p>Two.", ["One."]),
        ("One<template><template></template>x</template>two", ["Onetwo"]),
        ("</p></div></template>One.</table></td>", ["One."]),
        ("<p>co&shy;operate &unknown; &amp", ["cooperate &unknown; &"]),
        ("<![CDATA[ x ]]>One.<?php 1 ?>", ["One."]),
    ],
    ids=[
        *("signs", "no-tag", "apostrophe", "quoted", "open-heading", "breaks", "comment", "script"),
        *("nested", "stray-ends", "entities", "instructions"),
    ],
)
def test_broken_html_is_read_as_a_browser_would(
    tmp_path: Path, source: str, texts: list[str]
) -> None:
    document = read(tmp_path, "a.html", source)
    assert [text for _, text in shown(document)] == texts
    check(document)


@pytest.mark.parametrize("space", ["\t", "\n", "\r", "\f", "\r\n", " \t "])
def test_white_space_is_shown_as_one_space(tmp_path: Path, space: str) -> None:
    document = read(tmp_path, "a.html", f"<p>Long{space}lamps.</p>")
    assert shown(document) == [("sentence", "Long lamps.")]
    check(document)


@pytest.mark.parametrize(
    "piece", ["<!", "<a ", "<a '", '<a "', "<!--", "&", "<script>", "<a <", "</", "<b '\">", " <"]
)
def test_time_is_linear_in_length(piece: str) -> None:
    start = time.process_time()
    read_html(piece * (200_000 // len(piece)))
    assert time.process_time() - start < 2


def test_a_tag_of_a_million_attributes_takes_little_memory() -> None:
    """Tracing would not see it: `re` allocates its stack by itself."""
    program = (
        "import resource\n"
        "from askline.text.readers.html import read_html\n"
        "source = '<p ' + 'a=\"b\" ' * 1_000_000 + '>Text.</p>'\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert read_html(source).text == 'Text.\\n'\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(done.stdout) < 50_000  # kilobytes; it took 600,000


def test_a_title_with_an_endless_number_is_kept_as_it_is() -> None:
    assert read_html(f"<title>&#{'1' * 5000};</title>Text.").title == f"&#{'1' * 5000};"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=60))
def test_escaped_text_round_trips(text: str) -> None:
    text = " ".join(text.replace("\xad", "").split())
    source = f"<p>{html.escape(text)}</p>"
    content = read_html(source)
    assert [content.text[b.start : b.end] for b in content.blocks] == [text] * bool(text)
    for block in content.blocks:
        assert content.segments is not None
        start, end = content.segments.span(block.start, block.end)
        assert source[start:end] == html.escape(text)


class Standard(HTMLParser):
    """The text between the tags, a line break for every tag of a block."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append("" if tag == "b" else "\n")

    def handle_endtag(self, tag: str) -> None:
        self.found.append("\n")


@given(st.lists(st.sampled_from(["<p>", "</p>", "<b>", "&amp;", " ", "\n", "a", "Bc.", "<pre>"])))
def test_text_matches_the_standard_library_parser(pieces: list[str]) -> None:
    source = "".join(pieces)
    parser = Standard()
    parser.feed(source)
    parser.close()
    assert read_html(source).text.split() == "".join(parser.found).split()


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<nav><a href=a>One</a> two</nav><p>Text.", ["Text."]),
        ("<header><a href=/>Home</a> Shop</header><p>Text.<footer>© us</footer>", ["Text."]),
        ("<header><h1>Top</h1><p>By Ann.</header><p>Text.", ["Top", "By Ann.", "Text."]),
        ("<aside>See also.</aside><aside class='note'>Mind it.</aside>", ["Mind it."]),
        ("<div role=navigation>Up</div><div hidden>No</div><p>Text.", ["Text."]),
        ("<div style='display: none'>No</div><div aria-hidden=true>No</div>Text.", ["Text."]),
        ('<div class="x breadcrumbs"><div>A</div> / B</div><p>Text.', ["Text."]),
        ('<body class="has-sidebar"><p>Text.</body>', ["Text."]),
        ('<div id="cookie-banner">We set many.</div><p>Text.', ["Text."]),
        ("<p>Edit this page<p>Next<p>Last updated on May 2, 2021<p>Text.", ["Text."]),
        ("<p>Next: <a href=a>A</a>, Up: <a href=b>B</a><p>Text.", ["Text."]),
        ("<ul><li><a href=a>A</a><li><a href=#b>B</a></ul><p>Text.", ["Text."]),
        ("<ul><li><a href=https://x.org>A</a></ul>", ["A"]),
        ("<ul><li><a href=a>A</a> is one.</ul>", ["A is one."]),
        ("<h2>Top<a class=headerlink href=#top>¶</a></h2>Text.", ["Top", "Text."]),
        ("<div class=tip><h3>Tip</h3><p>Text.</div>", ["Text."]),
        ("<table><tr><td><a href=a>A</a><td><a href=b>B</a></table><p>Text.", ["Text."]),
        ("<table><tr><td><a href=a>A</a><td>is one</table>", ["A", "is one"]),
        ("<nav>Only navigation.</nav>", ["Only navigation."]),
        ("<div class=menu><p>The menu is not closed.", ["The menu is not closed."]),
    ],
)
def test_furniture_of_the_page_is_left_out(tmp_path: Path, source: str, texts: list[str]) -> None:
    document = read(tmp_path, "a.html", source)
    assert [document.text[block.start : block.end] for block in document.blocks] == texts
    check(document)


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<dl><dt>Lamp</dt><dd>It is lit.</dd></dl>", ["Lamp: It is lit."]),
        ("<dl><dt>Lamp:<dd><p>It is lit.</p><p>Late.</p></dl>", ["Lamp: It is lit.", "Late."]),
        ("<dl><dt>-v<dt>--verbose<dd>Says more.</dl>", ["-v, --verbose: Says more."]),
        ("<dl><dt>Lamp<dd><ul><li>It is lit.</ul></dl>", ["Lamp: ", "It is lit."]),
        ("<dl><dt>Why?<dd>Because.<dd>And so.</dl>", ["Why?", "Because.", "And so."]),
        ("<details><summary>Why?</summary>Because.</details>", ["Why?", "Because."]),
    ],
)
def test_terms_are_joined_with_their_meaning(tmp_path: Path, source: str, texts: list[str]) -> None:
    document = read(tmp_path, "a.html", source)
    found = [document.text[block.start : block.end] for block in document.blocks]
    assert [text.rstrip(": ") for text in found] == [text.rstrip(": ") for text in texts]
    check(document)


def test_items_and_questions_have_their_context(tmp_path: Path) -> None:
    source = (
        "<h1>FAQ</h1><p><b>Why is it slow?</b></p><p>It reads:</p>"
        "<ul><li>files:<ul><li>big ones</ul><li>mail</ul><p><b>Table 1. Sizes</b></p><p>End.</p>"
        "<dl><dt>Is it free?</dt><dd>Yes.</dd></dl>"
    )
    document = read(tmp_path, "a.html", source)
    found = {document.text[s.start : s.end]: s for s in iter_sentences(document)}
    assert found["It reads:"].headings == ("FAQ", "Why is it slow?")
    assert found["files:"].lead_in == "It reads:"
    assert found["big ones"].lead_in == "files:"
    assert found["mail"].lead_in == "It reads:"
    assert found["End."].headings == ("FAQ", "Why is it slow?")
    assert found["Yes."].headings == ("FAQ", "Is it free?")
    assert found["Is it free?"].kind == "heading"


def test_lines_that_breaks_separate_are_sentences(tmp_path: Path) -> None:
    page = (
        "<p>Phone: 12345<br>Fax: 98765<br/>Room: 12</p><p>The lamp was lit in the<br>year 1850 and "
        "burns<br>ever since.</p><ul><li>One<br>two</ul>"
    )
    document = read(tmp_path, "a.html", page)
    assert [text for _, text in shown(document)] == [
        *("Phone: 12345", "Fax: 98765", "Room: 12"),
        "The lamp was lit in the\nyear 1850 and burns\never since.",
        "One\ntwo",
    ]
    check(document)
