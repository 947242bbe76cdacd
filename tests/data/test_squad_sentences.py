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
    read_squad,
    to_question_set,
)

from .samples import labels, write_json

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


def test_candidates_are_the_sentences_with_their_places() -> None:
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
def test_each_span_marks_the_sentence_that_holds_most_of_it(
    spans: list[AnswerSpan], expected: list[int]
) -> None:
    [question] = to_question_set(paragraphs(*spans), splitter=split)
    assert labels(question) == [label == 1 for label in expected]


def test_the_first_span_alone_can_count() -> None:
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


def test_a_file_is_read_in_one_step(tmp_path: Path) -> None:
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
def test_held_out_parts_share_no_article_and_lose_nothing(sizes: list[tuple[str, int]]) -> None:
    whole = articles(sizes)
    rest, held = hold_out(whole, share=0.3)
    both = sorted(rest.paragraphs + held.paragraphs, key=whole.paragraphs.index)
    assert both == list(whole.paragraphs)
    assert held.question_count <= 0.3 * whole.question_count
    key = "article" if len({title for title, _ in sizes}) > 1 else "text"
    assert not {getattr(p, key) for p in rest.paragraphs} & {
        getattr(p, key) for p in held.paragraphs
    }


def test_the_held_out_part_does_not_hang_on_the_order() -> None:
    sizes = [(f"title {number}", 5) for number in range(40)]
    _, held = hold_out(articles(sizes))
    _, other = hold_out(articles(sizes[::-1]))
    assert held.question_count == other.question_count == 20
    titles = {paragraph.article for paragraph in held.paragraphs}
    assert titles == {paragraph.article for paragraph in other.paragraphs}
