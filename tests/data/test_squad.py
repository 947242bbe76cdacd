from __future__ import annotations

from pathlib import Path

import pytest

from askline.data import AnswerSpan, read_paragraphs

from .samples import problems, write_json

CONTEXT = "Tin melts early. Iron melts late, and iron rusts."


def qa(name: str = "q1", **changes: object) -> dict[str, object]:
    answers = [{"text": "Iron", "answer_start": 17}, {"text": "late", "answer_start": 28}]
    return {"id": name, "question": "What melts late?", "answers": answers} | changes


def document(*qas: object, title: str = "Metals of old") -> dict[str, object]:
    return {"data": [{"title": title, "paragraphs": [{"context": CONTEXT, "qas": list(qas)}]}]}


def test_paragraphs_hold_questions_and_exact_spans(tmp_path: Path) -> None:
    found = read_paragraphs(write_json(tmp_path / "dev.json", document(qa())), name="squad")
    assert (found.name, found.repairs, found.question_count) == ("squad", (), 1)
    [paragraph] = found.paragraphs
    assert (paragraph.id, paragraph.article) == ("Metals_of_old#0", "Metals of old")
    [question] = paragraph.questions
    assert question.answers == (AnswerSpan("Iron", 17, 21), AnswerSpan("late", 28, 32))
    for span in question.answers:
        assert paragraph.text[span.start : span.end] == span.text


def test_paragraphs_of_one_title_are_counted_on(tmp_path: Path) -> None:
    value = document(qa("a"))
    value["data"] = [*document(qa("a"))["data"], *document(qa("b"))["data"]]  # type: ignore[misc]
    found = read_paragraphs(write_json(tmp_path / "dev.json", value))
    assert [paragraph.id for paragraph in found.paragraphs] == [
        "Metals_of_old#0",
        "Metals_of_old#1",
    ]


def test_a_plain_list_takes_the_first_occurrence(tmp_path: Path) -> None:
    rows = [{"context": CONTEXT, "qas": [{"question": "What?", "answer": "melts"}]}] * 2
    found = read_paragraphs(write_json(tmp_path / "list.json", rows))
    assert [paragraph.id for paragraph in found.paragraphs] == ["P0", "P1"]
    [question] = found.paragraphs[1].questions
    assert (question.id, question.answers) == ("P1-Q0", (AnswerSpan("melts", 4, 9),))


def test_an_impossible_question_has_no_answers(tmp_path: Path) -> None:
    impossible = qa(answers=[], is_impossible=True, plausible_answers=[{"text": "Tin"}])
    found = read_paragraphs(write_json(tmp_path / "dev.json", document(impossible)))
    assert found.paragraphs[0].questions[0].answers == ()


@pytest.mark.parametrize(("given", "mended"), [(5, 4), (30, 22), (-1, 4), (900, 22)])
def test_a_wrong_offset_is_mended_and_told(tmp_path: Path, given: int, mended: int) -> None:
    wrong = qa(answers=[{"text": "melts", "answer_start": given}])
    path = write_json(tmp_path / "dev.json", document(wrong))
    found = read_paragraphs(path)
    assert found.paragraphs[0].questions[0].answers == (AnswerSpan("melts", mended, mended + 5),)
    assert [str(repair) for repair in found.repairs] == [
        f"{path}: data[0].paragraphs[0].qas[0]: 'melts' stands at {mended}, not at {given}; "
        "the offset is mended."
    ]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            qa("b", answers=[{"text": "gold", "answer_start": 3}]),
            "The answer 'gold' is neither at 3 nor elsewhere in the context. "
            "Correct its text or its offset.",
        ),
        (
            {"question": "What?", "answer": "gold"},
            "The answer 'gold' is not in the context. Correct it.",
        ),
        (qa("a"), "The question id 'a' is taken by data[0].paragraphs[0].qas[0]. "
                  "Give each its own id."),
        (qa("b", question=None), "'question' must be a text, got null."),
        (qa("b", answers="late"), "'answers' must be a list, got a text."),
        (qa("b", answers=["late"]), "An answer must be a JSON object {…}, got a text."),
        (
            qa("b", answers=[{"text": "late"}]),
            "No 'answer_start', only 'text'. Add it to the row.",
        ),
        (
            qa("b", answers=[{"text": "late", "answer_start": "28"}]),
            "'answer_start' must be a whole number, got a text.",
        ),
        (
            qa("b", is_impossible=True),
            "'is_impossible' is true, but there are 'answers'. Remove one of them.",
        ),
        (
            {"question": "What?"},
            "No 'answers', only 'question'. Add it to the row.",
        ),
    ],
)  # fmt: skip
def test_bad_questions_are_named_by_their_place(
    tmp_path: Path, bad: dict[str, object], message: str
) -> None:
    path = write_json(tmp_path / "dev.json", document(qa("a"), bad, 7))
    assert problems(read_paragraphs, path) == [
        (0, f"data[0].paragraphs[0].qas[1]: {message}"),
        (0, "data[0].paragraphs[0].qas[2]: The entry must be a JSON object {…}, got a number."),
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "Expected a JSON object with a list under 'data', or a plain list."),
        ({"data": {}}, "Expected a JSON object with a list under 'data', or a plain list."),
        ([], "The file has no paragraphs. Check that it is the right one, and whole."),
        ({"data": [{}]}, "data[0]: No 'paragraphs': the object is empty. Add it to the row."),
        ([{"qas": []}], "[0]: No 'context', only 'qas'. Add it to the row."),
        ([{"context": "x"}], "[0]: No 'qas', only 'context'. Add it to the row."),
    ],
)
def test_a_document_of_another_shape_is_refused(
    tmp_path: Path, value: object, message: str
) -> None:
    assert (0, message) in problems(read_paragraphs, write_json(tmp_path / "x.json", value))


def test_broken_json_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"data":\n[1,]}')
    [(line, message)] = problems(read_paragraphs, path)
    assert line == 2
    assert message.startswith("Not JSON: ")
