from __future__ import annotations

import time
from pathlib import Path

import pytest

from askline.text.readers import Place, iter_sentences
from askline.text.readers.pdf import _HYPHENATED_WORD

from .samples import check, lines, make_pdf, read, refusal, shown


def test_places_are_pages_and_there_are_no_original_offsets(tmp_path: Path) -> None:
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


def test_title_comes_from_the_metadata(tmp_path: Path) -> None:
    document = read(tmp_path, "a.pdf", make_pdf([lines("Text.")], title="  On  bridges "))
    assert document.title == "On bridges"


def test_large_type_is_a_heading_and_a_wide_gap_ends_a_paragraph(tmp_path: Path) -> None:
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
def test_hyphenated_words_are_joined(tmp_path: Path, rows: tuple[str, str], word: str) -> None:
    assert word in read(tmp_path, "a.pdf", make_pdf([lines(*rows)])).text


def test_hyphenated_word_does_not_end_its_paragraph(tmp_path: Path) -> None:
    rows = ("We are fond of infor-", "mation of all the kinds and of", "everything else there is.")
    [(_, text)] = shown(read(tmp_path, "a.pdf", make_pdf([lines(*rows)])))
    assert text.startswith("We are fond of information")
    assert text.endswith("else there is.")


def test_sentence_continues_over_a_page_break(tmp_path: Path) -> None:
    pages = [lines("The bridge was opened by"), lines("the mayor in May."), lines("New page.")]
    document = read(tmp_path, "a.pdf", make_pdf(pages))
    texts = [text for _, text in shown(document)]
    assert texts == ["The bridge was opened by\nthe mayor in May.", "New page."]
    assert document.place(document.text.index("mayor")).number == 2
    check(document)


def test_running_heads_and_page_numbers_are_dropped(tmp_path: Path) -> None:
    texts = ["Wood burns.", "Stone stays.", "Iron rusts.", "Rope frays."]
    pages = [
        [*lines("A book of bridges", top=800), *lines(text), *lines(f"{number}", top=40)]
        for number, text in enumerate(texts, 1)
    ]
    document = read(tmp_path, "a.pdf", make_pdf(pages))
    assert [text for _, text in shown(document)] == texts


def test_columns_are_read_in_order(tmp_path: Path) -> None:
    left = [(11.0, 72.0, 700.0 - 14 * row, text) for row, text in enumerate(("One two", "three."))]
    right = [(11.0, 320.0, 700.0 - 14 * row, text) for row, text in enumerate(("Four", "five."))]
    document = read(tmp_path, "a.pdf", make_pdf([[*left, *right]]))
    assert [text for _, text in shown(document)] == ["One two\nthree.", "Four\nfive."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (make_pdf([lines("Text.")], locked=True), "The PDF is encrypted. Save it without"),
        (make_pdf([[], []]), "The PDF has no text in its 2 pages, so it is probably a scan. Run"),
        (
            make_pdf([lines("Text.")])[:150],
            "It is not a PDF file, or it is damaged or truncated. Get it",
        ),
        (b"not a pdf", "It is not a PDF file, or it is damaged or truncated."),
        (b"", "It is not a PDF file, or it is damaged or truncated."),
    ],
    ids=["encrypted", "no-text", "truncated", "other", "empty"],
)
def test_unreadable_pdf_gives_the_reason(tmp_path: Path, content: bytes, message: str) -> None:
    assert refusal(tmp_path, "a.pdf", content).startswith(message)


def test_a_word_of_a_million_letters_takes_linear_time() -> None:
    start = time.process_time()
    assert _HYPHENATED_WORD.sub("", "a" * 1_000_000) == "a" * 1_000_000
    assert time.process_time() - start < 2


def test_contents_with_dot_leaders_are_left_out(tmp_path: Path) -> None:
    entries = [f"{number} Part {'. ' * 20} {number + 7}" for number in range(1, 8)]
    contents = lines("Contents", "Preface 1", *entries)
    body = lines("The lamp was lit late.", "Name . . . . . . . . 12", "It went out early.")
    found = shown(read(tmp_path, "a.pdf", make_pdf([contents, body])))
    assert [text for _, text in found] == ["The lamp was lit late.", "It went out early."]


def test_contents_with_page_numbers_are_left_out(tmp_path: Path) -> None:
    entries = ["About lamps 1", "Oil 1", "Towers 2", "Light at night 3", "The end 3", "Index 4"]
    body = lines("The lamp was lit late.", "It cost 12", "It went out early in May 4")
    pages = [lines("Contents", *entries), body, lines("One."), lines("Two.")]
    found = shown(read(tmp_path, "a.pdf", make_pdf(pages)))
    assert not any("Oil" in text for _, text in found)
    assert any("It cost 12" in text for _, text in found)
    found = shown(read(tmp_path, "b.pdf", make_pdf([lines("Prices", *reversed(entries)), body])))
    assert any("Oil 1" in text for _, text in found)


def test_lines_of_json_are_code(tmp_path: Path) -> None:
    page = lines('"lamp": "[the name]",', '"oil": "[liters]", ?', "}")
    text = lines('"Light it," he said;', "so they did.", top=500)
    found = shown(read(tmp_path, "a.pdf", make_pdf([[*page, *text]])))
    assert [kind for kind, _ in found] == ["code", "code", "sentence"]


def test_running_heads_of_several_lines_and_short_chapters_are_left_out(tmp_path: Path) -> None:
    words = "one two three four five six seven eight nine ten".split()
    pages = []
    for number, word in enumerate(words):
        chapter = "Short part" if number == 5 else "Long part"
        pages.append(
            [
                *lines("The manual", top=800),
                *lines(f"{chapter} {number}", top=785),
                *lines(f"It is the {word} lamp of the house.", top=700),
                *lines(f"Page {number}", top=40),
            ]
        )
    found = shown(read(tmp_path, "a.pdf", make_pdf(pages)))
    assert [text for _, text in found] == [f"It is the {word} lamp of the house." for word in words]


def test_lines_in_a_typewriter_font_are_code(tmp_path: Path) -> None:
    page = lines(
        "You can start it on each day with:", "start --now", "It runs until it is stopped."
    )
    code = ["start --now"]
    document = read(tmp_path, "a.pdf", make_pdf([page], typewriter=code))
    assert [(s.kind, s.lead_in) for s in iter_sentences(document)] == [
        ("sentence", ""),
        ("code", "You can start it on each day with:"),
        ("sentence", ""),
    ]
    whole = make_pdf([page], typewriter=[text for *_, text in page])
    assert {kind for kind, _ in shown(read(tmp_path, "a.pdf", whole))} == {"sentence"}


def test_a_long_heading_is_one_and_the_numbers_of_notes_are_left_out(tmp_path: Path) -> None:
    page = [
        (18.0, 72.0, 760.0, "3.9. Lamps that are kept in the"),
        (18.0, 72.0, 739.0, "old tower"),
        (18.0, 72.0, 718.0, "3.10. Oil"),
        *lines("The lamp is lit at dusk by the keeper of the tower, every day of the", top=690),
        *lines("year.", top=676),
        (6.0, 100.0, 680.0, "13"),
        (6.0, 72.0, 604.0, "13"),
        (9.0, 80.0, 600.0, "This is not done in a storm, because the door of the tower is then"),
        (9.0, 72.0, 588.0, "locked."),
    ]
    document = read(tmp_path, "a.pdf", make_pdf([page]))
    assert [(kind, " ".join(text.split())) for kind, text in shown(document)] == [
        ("heading", "3.9. Lamps that are kept in the old tower"),
        ("heading", "3.10. Oil"),
        (
            "sentence",
            "The lamp is lit at dusk by the keeper of the tower, every day of the year.",
        ),
        (
            "sentence",
            "This is not done in a storm, because the door of the tower is then locked.",
        ),
    ]
