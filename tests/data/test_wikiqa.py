from __future__ import annotations

from pathlib import Path

import pytest

from askline.data import read_wikiqa

from .samples import labels, problems, write

HEADER = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"
FIRST = "Q1\twhat is a loom?\tD1\tLoom\tD1-0\tA loom weaves cloth .\t1"
SECOND = 'Q1\twhat is a loom?\tD1\tLoom\tD1-1\tOne says "loom" of it.\t0'
OTHER = "Q2\twhat is tin?\tD2\tTin\tD2-0\tTin is a metal.\t0"


def test_rows_become_questions_in_order(tmp_path: Path) -> None:
    found = read_wikiqa(write(tmp_path / "dev.tsv", HEADER, FIRST, OTHER, SECOND), name="w")
    assert found.name == "w"
    assert [question.id for question in found] == ["Q1", "Q2"]
    loom = found.questions[0]
    assert loom.text == "what is a loom?"
    assert [candidate.id for candidate in loom.candidates] == ["D1-0", "D1-1"]
    assert loom.texts[1] == 'One says "loom" of it.'
    assert labels(loom) == [True, False]


def test_quotation_marks_do_not_join_rows(tmp_path: Path) -> None:
    opened = 'Q1\twhat?\tD1\tT\tD1-0\t"An open quotation\t0'
    found = read_wikiqa(write(tmp_path / "dev.tsv", HEADER, opened, OTHER))
    assert len(found) == 2
    assert found.questions[0].texts == ['"An open quotation']


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.tsv",
        "Label\tSentence\tSentenceID\tQuestion\tQuestionID",
        "1\tTin is a metal.\tD2-0\twhat is tin?\tQ2",
    )
    [question] = read_wikiqa(path)
    assert (question.id, question.texts, labels(question)) == ("Q2", ["Tin is a metal."], [True])


def test_missing_column_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", HEADER.replace("\tSentence\tLabel", ""), FIRST)
    [(line, message)] = problems(read_wikiqa, path)
    assert line == 1
    assert message.startswith("No column Sentence, Label. Expected QuestionID, Question")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            FIRST.rpartition("\t")[0],
            "Expected 7 tab-separated columns, got 6. Correct or remove the row.",
        ),
        (OTHER[:-1] + "yes", "Label must be 0 or 1, got 'yes'."),
        (OTHER.replace("Tin is a metal.", " "), "Sentence is empty. Fill it in, or remove it."),
        (OTHER.replace("what is tin?", ""), "Question is empty. Fill it in, or remove it."),
        (OTHER.replace("Q2", ""), "QuestionID is empty. Fill it in, or remove it."),
        (OTHER.replace("D2-0", ""), "SentenceID is empty. Fill it in, or remove it."),
        (
            FIRST,
            "The sentence id 'Q1 D1-0' is already used by line 2. Give each its own id.",
        ),
        (
            FIRST.replace("loom?", "shuttle?"),
            "Q1 has a different question text in an earlier row. Correct it.",
        ),
    ],
    ids=["columns", "label", "sentence", "question", "id", "sentence-id", "twice", "two-texts"],
)
def test_bad_row_is_reported(tmp_path: Path, bad: str, message: str) -> None:
    path = write(tmp_path / "x.tsv", HEADER, FIRST, SECOND, bad)
    assert problems(read_wikiqa, path) == [(4, message)]


def test_header_without_rows_or_broken_header_is_one_problem(tmp_path: Path) -> None:
    [(line, message)] = problems(read_wikiqa, write(tmp_path / "x.tsv", HEADER))
    assert (line, message[:26]) == (0, "The file has no questions.")
    (tmp_path / "y.tsv").write_bytes(b"\xff\n" + FIRST.encode())
    [(line, message)] = problems(read_wikiqa, tmp_path / "y.tsv")
    assert (line, message[:20]) == (1, "Byte 0xff at offset ")
