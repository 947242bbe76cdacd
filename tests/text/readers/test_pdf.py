from __future__ import annotations

from pathlib import Path

import pytest

from askline.text.readers import Place, iter_sentences

from .samples import check, lines, make_pdf, read, refusal, shown


def test_pages_are_places_and_have_no_original(tmp_path: Path) -> None:
    document = read(
        tmp_path,
        "book.pdf",
        make_pdf([lines("The bridge opened in 1931."), [], lines("It closed in 1970.")]),
    )
    found = [(str(document.place(s.start)), s.kind) for s in iter_sentences(document)]
    assert found == [("page 1", "sentence"), ("page 3", "sentence")]
    assert document.place(0) == Place("page", 1)
    assert document.span(0, 3) is None
    assert document.encoding is None
    assert document.title == "book"
    check(document)


def test_the_title_is_the_one_in_the_file(tmp_path: Path) -> None:
    document = read(tmp_path, "a.pdf", make_pdf([lines("Text.")], title="  On  bridges "))
    assert document.title == "On bridges"


def test_larger_type_is_a_heading_and_a_wide_step_ends_a_paragraph(tmp_path: Path) -> None:
    page = [
        *lines("On bridges", size=18, top=780),
        *lines("The old bridge was built of wood and", "burnt down in 1911.", top=740),
        *lines("no mark before the gap, which ends it", top=690),
        *lines("Another paragraph starts here, after it.", top=660),
    ]
    document = read(tmp_path, "a.pdf", make_pdf([page]))
    assert shown(document) == [
        ("heading", "On bridges"),
        ("sentence", "The old bridge was built of wood and\nburnt down in 1911."),
        ("sentence", "no mark before the gap, which ends it"),
        ("sentence", "Another paragraph starts here, after it."),
    ]
    assert {s.heading for s in iter_sentences(document)} == {"", "On bridges"}
    check(document)


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (("We like infor-", "mation of all kinds."), "information"),
        (("The well-known man is a well-", "known man."), "is a well-known man"),
        (("It was the Anglo-", "Saxon age."), "Anglo-Saxon"),
    ],
    ids=["cut", "written-with-hyphen-elsewhere", "capital"],
)
def test_cut_words_are_joined(tmp_path: Path, rows: tuple[str, str], word: str) -> None:
    assert word in read(tmp_path, "a.pdf", make_pdf([lines(*rows)])).text


def test_a_cut_word_does_not_end_its_paragraph(tmp_path: Path) -> None:
    rows = ("We are fond of infor-", "mation of all the kinds and of", "everything else there is.")
    [(_, text)] = shown(read(tmp_path, "a.pdf", make_pdf([lines(*rows)])))
    assert text.startswith("We are fond of information")
    assert text.endswith("else there is.")


def test_a_sentence_goes_on_over_a_page_break(tmp_path: Path) -> None:
    pages = [lines("The bridge was opened by"), lines("the mayor in May."), lines("New page.")]
    document = read(tmp_path, "a.pdf", make_pdf(pages))
    texts = [text for _, text in shown(document)]
    assert texts == ["The bridge was opened by\nthe mayor in May.", "New page."]
    assert document.place(document.text.index("mayor")).number == 2
    check(document)


def test_running_heads_and_page_numbers_are_left_out(tmp_path: Path) -> None:
    texts = ["Wood burns.", "Stone stays.", "Iron rusts.", "Rope frays."]
    pages = [
        [*lines("A book of bridges", top=800), *lines(text), *lines(f"{number}", top=40)]
        for number, text in enumerate(texts, 1)
    ]
    document = read(tmp_path, "a.pdf", make_pdf(pages))
    assert [text for _, text in shown(document)] == texts


def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = [(11.0, 72.0, 700.0 - 14 * row, text) for row, text in enumerate(("One two", "three."))]
    right = [(11.0, 320.0, 700.0 - 14 * row, text) for row, text in enumerate(("Four", "five."))]
    document = read(tmp_path, "a.pdf", make_pdf([[*left, *right]]))
    assert [text for _, text in shown(document)] == ["One two\nthree.", "Four\nfive."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (make_pdf([lines("Text.")], locked=True), "The pdf is encrypted. Save it without"),
        (make_pdf([[], []]), "The pdf has no text in its 2 pages, as scans have not. Run it"),
        (make_pdf([lines("Text.")])[:150], "It is no pdf, or damaged or cut short. Fetch it"),
        (b"not a pdf", "It is no pdf, or damaged or cut short."),
        (b"", "It is no pdf, or damaged or cut short."),
    ],
    ids=["encrypted", "no-text", "truncated", "other", "empty"],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, content: bytes, message: str) -> None:
    assert refusal(tmp_path, "a.pdf", content).startswith(message)
