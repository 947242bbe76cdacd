from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askline.data import (
    AnswerSpan,
    Paragraph,
    ParagraphSet,
    SpanQuestion,
    hold_out,
    read_paragraphs,
    read_squad,
    to_question_set,
)

from .samples import labels, problems, write_json

CONTEXT = "Tin melts early. Iron melts late, and iron rusts."


def qa(name: str = "q1", **changes: object) -> dict[str, object]:
    answers = [{"text": "Iron", "answer_start": 17}, {"text": "late", "answer_start": 28}]
    return {"id": name, "question": "What melts late?", "answers": answers} | changes


def document(*qas: object, title: str = "Metals of old") -> dict[str, object]:
    return {"data": [{"title": title, "paragraphs": [{"context": CONTEXT, "qas": list(qas)}]}]}


def test_paragraphs_have_questions_and_exact_spans(tmp_path: Path) -> None:
    found = read_paragraphs(write_json(tmp_path / "dev.json", document(qa())), name="squad")
    assert (found.name, found.repairs, found.question_count) == ("squad", (), 1)
    [paragraph] = found.paragraphs
    assert (paragraph.id, paragraph.article) == ("Metals_of_old#0", "Metals of old")
    [question] = paragraph.questions
    assert question.answers == (AnswerSpan("Iron", 17, 21), AnswerSpan("late", 28, 32))
    for span in question.answers:
        assert paragraph.text[span.start : span.end] == span.text


def test_paragraphs_of_equal_titles_are_numbered_on(tmp_path: Path) -> None:
    value = document(qa("a"))
    value["data"] = [*document(qa("a"))["data"], *document(qa("b"))["data"]]  # type: ignore[misc]
    found = read_paragraphs(write_json(tmp_path / "dev.json", value))
    assert [paragraph.id for paragraph in found.paragraphs] == [
        "Metals_of_old#0",
        "Metals_of_old#1",
    ]


def test_plain_list_uses_the_first_occurrence(tmp_path: Path) -> None:
    rows = [{"context": CONTEXT, "qas": [{"question": "What?", "answer": "melts"}]}] * 2
    found = read_paragraphs(write_json(tmp_path / "list.json", rows))
    assert [paragraph.id for paragraph in found.paragraphs] == ["P0", "P1"]
    [question] = found.paragraphs[1].questions
    assert (question.id, question.answers) == ("P1-Q0", (AnswerSpan("melts", 4, 9),))


def test_impossible_question_has_no_answers(tmp_path: Path) -> None:
    impossible = qa(answers=[], is_impossible=True, plausible_answers=[{"text": "Tin"}])
    found = read_paragraphs(write_json(tmp_path / "dev.json", document(impossible)))
    assert found.paragraphs[0].questions[0].answers == ()


@pytest.mark.parametrize(("given", "corrected"), [(5, 4), (30, 22), (-1, 4), (900, 22)])
def test_wrong_offset_is_corrected_and_reported(tmp_path: Path, given: int, corrected: int) -> None:
    wrong = qa(answers=[{"text": "melts", "answer_start": given}])
    path = write_json(tmp_path / "dev.json", document(wrong))
    found = read_paragraphs(path)
    assert found.paragraphs[0].questions[0].answers == (
        AnswerSpan("melts", corrected, corrected + 5),
    )
    assert [str(repair) for repair in found.repairs] == [
        f"{path}: data[0].paragraphs[0].qas[0]: 'melts' is at {corrected}, not at {given}; "
        "the offset was corrected."
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
        (qa("a"), "The question id 'a' is already used by data[0].paragraphs[0].qas[0]. "
                  "Give each its own id."),
        (qa("b", question=None), "'question' must be a string, got null."),
        (qa("b", answers="late"), "'answers' must be a list, got a string."),
        (qa("b", answers=["late"]), "An answer must be a JSON object {…}, got a string."),
        (
            qa("b", answers=[{"text": "late"}]),
            "No 'answer_start', only 'text'. Add it to the row.",
        ),
        (
            qa("b", answers=[{"text": "late", "answer_start": "28"}]),
            "'answer_start' must be an integer, got a string.",
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
def test_bad_questions_are_reported_with_their_path(
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
        ([], "The file has no paragraphs. Check that it is the right file."),
        ({"data": [{}]}, "data[0]: No 'paragraphs': the object is empty. Add it to the row."),
        ([{"qas": []}], "[0]: No 'context', only 'qas'. Add it to the row."),
        ([{"context": "x"}], "[0]: No 'qas', only 'context'. Add it to the row."),
    ],
)
def test_document_of_another_structure_is_refused(
    tmp_path: Path, value: object, message: str
) -> None:
    assert (0, message) in problems(read_paragraphs, write_json(tmp_path / "x.json", value))


def test_invalid_json_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"data":\n[1,]}')
    [(line, message)] = problems(read_paragraphs, path)
    assert line == 2
    assert message.startswith("Not JSON: ")


TEXT = "Tin melts early.  Iron melts late. Iron rusts."
CUTS = [(0, 16), (18, 34), (35, 46)]


def split(text: str) -> list[tuple[int, int]]:
    assert text == TEXT
    return CUTS


def span(start: int, end: int) -> AnswerSpan:
    return AnswerSpan(TEXT[start:end], start, end)


def paragraphs(*spans: AnswerSpan) -> ParagraphSet:
    question = SpanQuestion("q", "What?", spans)
    return ParagraphSet("tiny", (Paragraph("Metals#0", "Metals", TEXT, (question,)),))


def test_candidates_are_sentences_with_their_sources() -> None:
    [question] = to_question_set(paragraphs(span(29, 33)), splitter=split)
    assert question.texts == ["Tin melts early.", "Iron melts late.", "Iron rusts."]
    assert [candidate.id for candidate in question.candidates] == [
        "Metals#0-0",
        "Metals#0-1",
        "Metals#0-2",
    ]
    for candidate, (start, end) in zip(question.candidates, CUTS, strict=True):
        assert candidate.source is not None
        assert candidate.source.document == "Metals#0"
        assert (candidate.source.start, candidate.source.end) == (start, end)
    assert (labels(question), question.answers) == ([False, True, False], ("late",))


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], [0, 0, 0]),
        ([span(0, 3), span(0, 3)], [1, 0, 0]),
        ([span(35, 39), span(18, 22)], [0, 1, 1]),
        ([span(0, 16)], [1, 0, 0]),
        ([span(10, 22)], [1, 0, 0]),
        ([span(15, 34)], [0, 1, 0]),
        ([span(29, 40)], [0, 1, 0]),
        ([span(14, 20)], [1, 0, 0]),
        ([span(16, 18)], [0, 0, 0]),
    ],
    ids=["none", "equal", "two", "whole", "cut-left", "cut-right", "near-tie", "tie", "outside"],
)
def test_each_span_labels_the_sentence_with_most_of_it(
    spans: list[AnswerSpan], expected: list[int]
) -> None:
    [question] = to_question_set(paragraphs(*spans), splitter=split)
    assert labels(question) == [label == 1 for label in expected]


def test_gold_first_uses_the_first_span_only() -> None:
    given_set = paragraphs(span(35, 39), span(18, 22), span(18, 22))
    [question] = to_question_set(given_set, splitter=split, gold="first")
    assert labels(question) == [False, False, True]
    assert question.answers == ("Iron",)


def test_negatives_are_shared_between_questions() -> None:
    [paragraph] = paragraphs(span(0, 3)).paragraphs
    other = SpanQuestion("r", "Which?", (span(18, 22),))
    both = Paragraph("p", "", TEXT, (*paragraph.questions, other))
    first, second = to_question_set(ParagraphSet("tiny", (both,)), splitter=split)
    assert first.candidates[2] is second.candidates[2]
    assert (labels(first)[0], labels(second)[0]) == (True, False)


def test_read_squad_reads_a_file_in_one_step(tmp_path: Path) -> None:
    answers = [{"text": "late", "answer_start": 29}]
    row = {"context": TEXT, "qas": [{"id": "q", "question": "When?", "answers": answers}]}
    path = write_json(tmp_path / "x.json", {"data": [{"title": "T", "paragraphs": [row]}]})
    found = read_squad(path, name="squad2:tiny")
    assert found.name == "squad2:tiny"
    [question] = found
    assert question.texts == ["Tin melts early.", "Iron melts late.", "Iron rusts."]
    assert labels(question) == [False, True, False]
    for candidate in question.candidates:
        assert candidate.source is not None
        assert TEXT[candidate.source.start : candidate.source.end] == candidate.text


def articles(sizes: list[tuple[str, int]]) -> ParagraphSet:
    """One paragraph with that many questions for each entry."""
    found = []
    for place, (title, size) in enumerate(sizes):
        questions = tuple(SpanQuestion(f"{place}.{n}", "What?", ()) for n in range(size))
        found.append(Paragraph(f"p{place}", title, f"Text {place % 7}.", questions))
    return ParagraphSet("tiny", tuple(found))


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 9)), min_size=1))
def test_hold_out_parts_share_no_article_and_lose_nothing(sizes: list[tuple[str, int]]) -> None:
    whole = articles(sizes)
    rest, held = hold_out(whole, share=0.3)
    both = sorted(rest.paragraphs + held.paragraphs, key=whole.paragraphs.index)
    assert both == list(whole.paragraphs)
    assert held.question_count <= 0.3 * whole.question_count
    key = "article" if len({title for title, _ in sizes}) > 1 else "text"
    assert not {getattr(p, key) for p in rest.paragraphs} & {
        getattr(p, key) for p in held.paragraphs
    }


def test_hold_out_does_not_depend_on_the_order() -> None:
    sizes = [(f"title {number}", 5) for number in range(40)]
    _, held = hold_out(articles(sizes))
    _, other = hold_out(articles(sizes[::-1]))
    assert held.question_count == other.question_count == 20
    titles = {paragraph.article for paragraph in held.paragraphs}
    assert titles == {paragraph.article for paragraph in other.paragraphs}
