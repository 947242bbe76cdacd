from __future__ import annotations

from pathlib import Path

from askline.text.readers import iter_sentences

from .samples import check, make_epub, make_zip, read, refusal, shown

ONE = "<html><body><p>It was dark. The sea rose.</p></body></html>"
TWO = "<html><body><h1>Morning</h1><h2>Six o'clock</h2><p>The sun came.</p></body></html>"
NAV = '<nav><ol><li><a href="one.xhtml#x">The <b>night</b> &amp; sea</a></li></ol></nav>'
NCX = (
    '<!DOCTYPE ncx PUBLIC "x" "y"><ncx><navPoint><navLabel><text>The night</text></navLabel>'
    '<content src="one.xhtml"/></navPoint></ncx>'
)


def test_chapters_in_reading_order_with_titles(tmp_path: Path) -> None:
    document = read(tmp_path, "a.epub", make_epub({"two": TWO, "one": ONE}, nav=NAV))
    assert shown(document) == [
        ("heading", "Morning"),
        ("heading", "Six o'clock"),
        ("sentence", "The sun came."),
        ("heading", "The night & sea"),
        ("sentence", "It was dark."),
        ("sentence", "The sea rose."),
    ]
    paths = [sentence.context.headings for sentence in iter_sentences(document)]
    assert paths[2] == ("Morning", "Six o'clock")
    assert paths[4] == ("The night & sea",)
    assert str(document.place(document.text.index("dark"))) == "chapter 2"
    assert (document.title, document.unit, document.encoding) == ("The tower", "chapter", None)
    check(document)


def test_titles_of_older_books(tmp_path: Path) -> None:
    document = read(tmp_path, "a.epub", make_epub({"one": ONE}, ncx=NCX))
    assert shown(document)[0] == ("heading", "The night")


def test_a_heading_does_not_go_on_in_the_next_chapter(tmp_path: Path) -> None:
    document = read(tmp_path, "a.epub", make_epub({"two": TWO, "one": ONE}))
    assert [s.heading for s in iter_sentences(document)][-1] == ""


def test_a_chapter_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    book = make_epub({"one": ONE, "two": "\0\0\0\0"})
    document = read(tmp_path, "a.epub", book)
    assert [problem.message[:35] for problem in document.problems] == [
        "OEBPS/two.xhtml in it was left out:"
    ]
    assert "OEBPS/two.xhtml in it" in refusal(tmp_path, "b.epub", make_epub({"two": "\0\0\0\0"}))


def test_protected_and_empty_books_are_refused(tmp_path: Path) -> None:
    encryption = '<e><CipherReference URI="OEBPS/one.xhtml"/></e>'
    protected = make_epub({"one": ONE}, encryption=encryption)
    assert "protected against copying" in refusal(tmp_path, "a.epub", protected)
    container = make_zip({"META-INF/container.xml": "<container/>"})
    assert "names no book" in refusal(tmp_path, "b.epub", container)
    missing = make_zip({"META-INF/container.xml": '<c><rootfile full-path="a.opf"/></c>'})
    assert "without a.opf, so it is not an EPUB file" in refusal(tmp_path, "c.epub", missing)
