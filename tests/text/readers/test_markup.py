"""What holds for every format of line-oriented markup."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from askline.errors import DataError
from askline.text.readers import iter_sentences
from askline.text.readers.asciidoc import read_asciidoc
from askline.text.readers.document import Content
from askline.text.readers.latex import read_latex
from askline.text.readers.manpage import read_manpage
from askline.text.readers.offsets import Segments, TextBuilder
from askline.text.readers.org import read_org
from askline.text.readers.rst import read_rst
from askline.text.readers.subtitles import read_subtitles

from . import test_asciidoc, test_latex, test_manpage, test_org, test_rst, test_subtitles
from .samples import check, read

PAGES = {
    "a.rst": test_rst.PAGE,
    "a.adoc": test_asciidoc.PAGE,
    "a.org": test_org.PAGE,
    "a.tex": test_latex.PAGE,
    "a.1": test_manpage.PAGE,
    "a.srt": test_subtitles.SRT,
}
READERS = {
    "rst": read_rst,
    "asciidoc": read_asciidoc,
    "org": read_org,
    "latex": read_latex,
    "manpage": read_manpage,
    "subtitles": read_subtitles,
}
ADVERSARIAL = {
    "rst": ["`", "``a ", ":a:", ":a:`b", "*a ", "- ", "a_ ", "|a", "[a]_", ".. ", "+-", "= ", "\n"],
    "asciidoc": [
        "*a ",
        "`",
        "<<a",
        "link:a[",
        "a:",
        "[",
        "{a}",
        "((",
        "|===\n|a",
        "a::\n",
        "* ",
        "----\n",
    ],
    "org": [
        "*a ",
        "=a ",
        "[[a",
        "<<a",
        "- ",
        "- a :: ",
        "| a ",
        ":a:",
        "#+begin_src\n",
        "{{{",
        "* ",
    ],
    "latex": [
        "{",
        "}",
        "[",
        "\\a[",
        "\\label{",
        "\\(",
        "$a",
        "$",
        "\\verb|",
        "%",
        "\\section{",
        "\\begin{a}",
        "\\item[",
        " ",
        "\\title{",
    ],
    "manpage": ["\\", "\\f", ".SH a\n", ".TP\n", ".B a ", '"', ".SH\n.TS\n", ".nf\n", ".if \\{"],
    "subtitles": ["<", "00:01.0 --> 00:02.0\na\n", "-->", "&", "{\\"],
}
CASES = [(kind, piece) for kind, pieces in ADVERSARIAL.items() for piece in pieces]


@pytest.mark.parametrize("name", PAGES)
def test_words_of_a_sentence_are_in_its_slice_of_the_source(tmp_path: Path, name: str) -> None:
    document = read(tmp_path, name, PAGES[name])
    check(document)
    for sentence in iter_sentences(document):
        span = document.span(sentence.start, sentence.end)
        assert span is not None
        original = PAGES[name][slice(*span)]
        words = re.findall(r"\w+", document.text[sentence.start : sentence.end])
        assert all(word in original for word in words) or "{" in original


@pytest.mark.parametrize("name", PAGES)
def test_offsets_hold_for_damaged_files(tmp_path: Path, name: str) -> None:
    generator = random.Random(21)
    page = PAGES[name]
    for round_number in range(60):
        lines = page.splitlines(keepends=True)
        if round_number % 2:
            generator.shuffle(lines)
        else:
            at = generator.randrange(len(page))
            lines = [page[:at], generator.choice("`*_|[{\\=-+:/%.'\"\r\n \t<é𝄞"), page[at + 3 :]]
        source = "x\n" + "".join(lines) + "\n\nend"
        try:
            document = read(tmp_path, name, source)
        except DataError as error:
            if "no text" not in str(error):
                raise
        else:
            check(document)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "piece"), CASES)
@pytest.mark.parametrize("ending", ["", "\n"], ids=["one line", "lines"])
def test_time_is_linear_in_length(kind: str, piece: str, ending: str) -> None:
    piece += ending

    def seconds(length: int) -> float:
        start = time.process_time()
        content: Content = READERS[kind](piece * (length // len(piece)))
        assert len(content.text) <= 2 * length
        return time.process_time() - start

    seconds(1000)
    short = min(seconds(20_000) for _ in range(2))
    long = min(seconds(40_000) for _ in range(2))
    assert long < 3 * short + 0.1


def test_segments_compose() -> None:
    outer = TextBuilder()
    outer.add("ab", 10, 12)
    outer.add("&", 12, 17)
    outer.add("cd", 17, 19)
    inner = TextBuilder()
    inner.add("b&c", 1, 4)
    inner.insert("\n", 4)
    inner.add("d", 4, 5)
    composed: Segments = inner.segments.through(outer.segments)
    assert inner.text() == "b&c\nd"
    assert [composed.span(at, at + 1) for at in range(5)] == [
        (11, 12),
        (12, 17),
        (17, 18),
        (18, 18),
        (18, 19),
    ]
