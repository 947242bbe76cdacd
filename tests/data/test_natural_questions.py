from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from askline.data import read_asnq, read_natural_questions

from .samples import labels, problems, write

PAGE = (
    "Tin - Encyclopedia <H1> Tin </H1> <Table> <Tr> <Td> Sn 50 </Td> </Tr> </Table> "
    "<P> Tin is a soft metal . </P> <P> </P> <Ul> <Li> <P> Cornwall had mines . </P> </Li> </Ul> "
    "<P> It melts at 232 degrees . </P>"
)
TOKENS = PAGE.split(" ")


def box(first: str, nth: int = 0, *, top_level: bool = True) -> dict[str, object]:
    """The nth block that opens with a tag, by the places of its tokens."""
    starts = [place for place, token in enumerate(TOKENS) if token == first]
    start = starts[nth]
    end = TOKENS.index(first.replace("<", "</"), start) + 1
    return {"start_token": start, "end_token": end, "top_level": top_level}


SOFT, BLANK, INNER, MELTS = (box("<P>", nth, top_level=nth != 2) for nth in range(4))
BOXES = [box("<Table>"), SOFT, BLANK, box("<Ul>"), INNER, MELTS]


def note(long: dict[str, object] | None, *short: str) -> dict[str, object]:
    places = [TOKENS.index(word) for word in short]
    return {
        "long_answer": long or {"start_token": -1, "end_token": -1, "candidate_index": -1},
        "short_answers": [{"start_token": at, "end_token": at + 2} for at in places],
        "yes_no_answer": "NONE",
    }


def row(*notes: dict[str, object], **changes: object) -> str:
    record = {
        "example_id": 77,
        "question_text": "when does tin melt",
        "document_url": "https://example.org/tin",
        "document_text": PAGE,
        "long_answer_candidates": BOXES,
        "annotations": list(notes),
    }
    return json.dumps(record | changes)


def test_candidates_are_the_top_level_paragraphs(tmp_path: Path) -> None:
    path = write(tmp_path / "nq.jsonl", row(note(MELTS, "232")))
    [question] = read_natural_questions(path, name="nq:dev")
    assert (question.id, question.text) == ("77", "when does tin melt")
    assert question.texts == ["Tin is a soft metal .", "It melts at 232 degrees ."]
    assert (labels(question), question.answers) == ([False, True], ("232 degrees",))
    assert [candidate.id for candidate in question.candidates] == ["77-1", "77-5"]
    for candidate in question.candidates:
        assert candidate.source is not None
        assert candidate.source.document == "https://example.org/tin"
        assert PAGE[candidate.source.start : candidate.source.end] == candidate.text


def test_gzip_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "nq.jsonl.gz"
    path.write_bytes(gzip.compress(row(note(SOFT)).encode()))
    assert labels(read_natural_questions(path).questions[0]) == [True, False]


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ([note(SOFT), note(MELTS), note(None)], [True, True]),
        ([note(box("<Table>")), note(MELTS)], [False, True]),
        ([note(None), note(None)], [False, False]),
        ([], [False, False]),
        ([note(box("<Table>")), note(None)], None),
        ([note(box("<Ul>"))], None),
        ([note(INNER)], None),
    ],
    ids=["two", "table-and-p", "nobody", "no-notes", "table", "list", "inner"],
)
def test_labels_are_the_annotators_choices(
    tmp_path: Path, notes: list[dict[str, object]], expected: list[bool] | None
) -> None:
    path = write(tmp_path / "nq.jsonl", row(note(SOFT), example_id=1), row(*notes))
    found = read_natural_questions(path).questions[1:]
    assert [labels(question) for question in found] == ([] if expected is None else [expected])


def test_page_without_paragraphs_is_skipped(tmp_path: Path) -> None:
    bare = row(example_id=2, long_answer_candidates=BOXES[:1])
    found = read_natural_questions(write(tmp_path / "nq.jsonl", row(), bare))
    assert [question.id for question in found] == ["77"]


def test_source_of_a_row_without_url_is_its_id(tmp_path: Path) -> None:
    path = write(tmp_path / "nq.jsonl", row(document_url=None))
    source = read_natural_questions(path).questions[0].candidates[0].source
    assert source is not None
    assert source.document == "77"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(), "The question id '77' is already used by line 1. Give each its own id."),
        (row(example_id="x"), "'example_id' must be an integer, got a string."),
        (row(example_id=2, document_text=None), "'document_text' must be a string, got null."),
        (
            row(example_id=2, long_answer_candidates=[{"start_token": 3, "end_token": 999}]),
            f"Tokens 3 to 999 are outside of 'document_text', which has {len(TOKENS)} tokens. "
            "Get the file again.",
        ),
        (
            row(example_id=2, annotations=[1]),
            "An annotation must be a JSON object {…}, got a number.",
        ),
        (
            row(example_id=2, annotations=[{}]),
            "No 'long_answer': the object is empty. Add it to the row.",
        ),
    ],
)
def test_bad_rows_are_reported(tmp_path: Path, bad: str, message: str) -> None:
    path = write(tmp_path / "nq.jsonl", row(), bad)
    assert problems(read_natural_questions, path) == [(2, message)]


def test_asnq_label_four_is_the_answer(tmp_path: Path) -> None:
    rows = [f"what is tin\tSentence {label}.\t{label}" for label in (1, 4, 2, 3)]
    [question] = read_asnq(write(tmp_path / "dev.tsv", *rows))
    assert (question.id, question.text) == ("Q1", "what is tin")
    assert labels(question) == [False, True, False, False]
    assert [candidate.id for candidate in question.candidates] == ["Q1-0", "Q1-1", "Q1-2", "Q1-3"]


def test_asnq_rows_are_grouped_by_question_and_quotes_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.tsv", 'a\t"Open.\t1', "b\tTwo.\t4", "a\tOne.\t4", "", "a\tOne.\t2")
    found = read_asnq(path, name="asnq:dev")
    assert [(question.id, question.texts) for question in found] == [
        ("Q1", ['"Open.', "One.", "One."]),
        ("Q2", ["Two."]),
    ]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            "what\tTin.",
            "Expected three tab-separated columns (question, sentence, label), got 2. "
            "Correct or remove the row.",
        ),
        ("what\tTin.\t0", "Label must be 1, 2, 3 or 4, got '0'."),
        ("what\tTin.\t44", "Label must be 1, 2, 3 or 4, got '44'."),
        ("what\t \t4", "The question or the sentence is empty. Remove the row."),
        ("\tTin.\t4", "The question or the sentence is empty. Remove the row."),
    ],
    ids=["columns", "label", "long-label", "sentence", "question"],
)
def test_bad_asnq_row_is_reported(tmp_path: Path, bad: str, message: str) -> None:
    path = write(tmp_path / "dev.tsv", "what\tTin.\t1", bad, bad)
    assert problems(read_asnq, path) == [(2, message), (3, message)]
