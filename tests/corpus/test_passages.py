from __future__ import annotations

from askline.corpus.passages import PASSAGE_CHARACTERS, split_passages
from askline.corpus.schema import SENTENCE_KINDS, SentenceRecord


def _rows(*sentences: tuple[str, str]) -> list[SentenceRecord]:
    return [
        SentenceRecord(place, 0, 0, 1, 0, heading, text)
        for place, (heading, text) in enumerate(sentences)
    ]


def test_neighboring_sentences_share_a_passage() -> None:
    (only,) = split_passages(_rows(("", "One."), ("", "Two.")))
    assert only == (0, 1, "\nOne.\nTwo.")


def test_a_passage_ends_with_its_section_and_brings_its_heading() -> None:
    found = list(split_passages(_rows(("A", "One."), ("A", "Two."), ("B", "Three."))))
    assert [(first, last) for first, last, _ in found] == [(0, 1), (2, 2)]
    assert found[1].text == "B\nThree."


def test_a_passage_ends_before_it_is_too_long() -> None:
    third = "x" * (PASSAGE_CHARACTERS // 3)
    found = list(split_passages(_rows(*(("", third) for _ in range(7)))))
    assert [(first, last) for first, last, _ in found] == [(0, 2), (3, 5), (6, 6)]


def test_a_long_sentence_is_a_passage_of_its_own() -> None:
    long = "x" * (2 * PASSAGE_CHARACTERS)
    found = list(split_passages(_rows(("", "One."), ("", long), ("", "Two."))))
    assert [(first, last) for first, last, _ in found] == [(0, 0), (1, 1), (2, 2)]


def test_a_passage_starts_with_the_path_of_its_headings() -> None:
    rows = [
        SentenceRecord(0, 0, 0, 1, 1, "Guide", "Linux", "Guide"),
        SentenceRecord(1, 0, 0, 1, 0, "Linux", "One.", "Guide\nLinux"),
        SentenceRecord(2, 0, 0, 1, 0, "Linux", "Two.", "Tour\nLinux"),
        SentenceRecord(3, 0, 0, 1, 4, "Linux · A | B", "1 | 2", "Tour\nLinux"),
    ]
    assert list(split_passages(rows)) == [
        (1, 1, "Guide > Linux\nOne."),
        (2, 2, "Tour > Linux\nTwo."),
        (3, 3, "Tour > Linux · A | B\n1 | 2"),
    ]


def test_code_is_in_the_passage_above_it_if_it_fits() -> None:
    code = SENTENCE_KINDS.index("code")
    rows = [
        SentenceRecord(0, 0, 0, 1, 0, "", "Run it:"),
        SentenceRecord(1, 0, 0, 1, code, "", "run"),
        SentenceRecord(2, 0, 0, 1, code, "", "x" * PASSAGE_CHARACTERS),
    ]
    assert list(split_passages(rows)) == [(0, 1, "\nRun it:\nrun")]


def test_an_empty_document_has_no_passages() -> None:
    assert list(split_passages([])) == []
