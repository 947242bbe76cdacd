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
