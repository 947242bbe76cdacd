from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askline.data import filter_questions, pad
from askline.errors import InputError, UnknownNameError
from askline.types import Candidate, Question, QuestionSet

from .samples import make_set

MIXED = make_set(
    [
        ("both", {"a": 1, "b": 0}),
        ("negatives", {"a": 0, "b": 0}),
        ("positives", {"a": 1, "b": 1}),
        ("nothing", {}),
    ]
)


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("all", ["both", "negatives", "positives", "nothing"]),
        ("answerable", ["both", "positives"]),
        ("both", ["both"]),
    ],
)
def test_filter_keeps_the_questions_that_pass(which: str, expected: list[str]) -> None:
    found = filter_questions(MIXED, which)
    assert [question.text for question in found] == expected
    assert found.name == MIXED.name


def test_unknown_filter_lists_the_known_ones() -> None:
    message = r"No filter 'answered'\. Known: all, answerable, both\. Did you mean 'answerable'\?"
    with pytest.raises(UnknownNameError, match=message):
        filter_questions(MIXED, "answered")


WIDE = make_set(
    (f"question {number}", {f"sentence {number}.{place}": int(place == 1) for place in range(4)})
    for number in range(60)
)


def added(question: Question) -> list[Candidate]:
    return [candidate for candidate in question.candidates if candidate.id.startswith("pad:")]


def test_padding_adds_negatives_and_keeps_the_order_of_the_own_candidates() -> None:
    for before, after in zip(WIDE, pad(WIDE, 50), strict=True):
        assert (after.id, after.text, len(after.candidates)) == (before.id, before.text, 50)
        own = tuple(c for c in after.candidates if not c.id.startswith("pad:"))
        assert own == before.candidates
        assert not any(candidate.is_answer for candidate in added(after))
        assert len(set(after.texts)) == len({c.id for c in after.candidates}) == 50


def test_ids_of_added_candidates_name_their_origin() -> None:
    texts = {f"pad:{q.id}/{c.id}": c.text for q in WIDE for c in q.candidates}
    for question in pad(WIDE, 20):
        for candidate in added(question):
            assert texts[candidate.id] == candidate.text


def test_positions_do_not_reveal_added_candidates() -> None:
    places = [
        place
        for question in pad(WIDE, 40)
        for place, candidate in enumerate(question.candidates)
        if not candidate.id.startswith("pad:")
    ]
    # 240 places drawn from 0 to 39: a mean of 19.5 with a standard error of 0.75.
    assert 16.5 < sum(places) / len(places) < 22.5
    assert min(places) < 4
    assert max(places) > 35


def test_padding_depends_on_the_seed_not_on_the_order_of_questions() -> None:
    first = pad(WIDE, 30, seed=5)
    assert pad(WIDE, 30, seed=5) == first
    assert pad(WIDE, 30, seed=6) != first
    turned = pad(replace(WIDE, questions=WIDE.questions[::-1]), 30, seed=5)
    assert turned.questions[::-1] == first.questions
    assert added(first.questions[0]) != added(first.questions[1])


def test_input_set_and_long_lists_are_unchanged() -> None:
    assert pad(WIDE, 4) == WIDE
    assert pad(WIDE, 1) == WIDE
    assert pad(QuestionSet("none", ()), 9) == QuestionSet("none", ())


def test_answers_of_an_equal_question_are_not_added() -> None:
    twins = make_set(
        [
            ("Who came?", {"Ann came.": 1, "Bob slept.": 0}),
            ("who  came?", {"It was Ann.": 1, "Cy sang.": 0, "bob  SLEPT.": 0}),
            ("What burnt?", {"Ann came.": 0, "The barn burnt.": 1}),
        ]
    )
    for question in pad(twins, 4).questions[:2]:
        assert {candidate.text for candidate in added(question)} <= {"Cy sang.", "The barn burnt."}
    with pytest.raises(InputError, match=r"question 'q0' can get at most 4 candidates"):
        pad(twins, 5)


def _in_series() -> QuestionSet:
    """Twenty questions, four to a topic, the last four without one."""
    topics = ["red", "green", "blue", "grey", ""]
    questions = enumerate(WIDE.questions[:20])
    return replace(WIDE, questions=tuple(replace(q, topic=topics[n // 4]) for n, q in questions))


def _origins(question: Question) -> set[str]:
    return {candidate.id.split("/")[0].removeprefix("pad:") for candidate in added(question)}


def test_nothing_of_the_same_topic_is_added() -> None:
    series = _in_series()
    topics = {question.id: question.topic for question in series}
    for question in pad(series, 64):
        others = {topics[origin] for origin in _origins(question)}
        if question.topic:  # 64 is all that there is: 16 questions of other topics, and its own 4
            assert others == {"red", "green", "blue", "grey", ""} - {question.topic}
        else:
            assert others == {"red", "green", "blue", "grey", ""}
    with pytest.raises(InputError, match=r"question 'q0' can get at most 68 candidates"):
        pad(series, 69)


def test_same_topic_allows_texts_of_the_topic() -> None:
    series = _in_series()
    for question in pad(series, 80, same_topic=True):
        assert len(_origins(question)) == 19
    without = replace(series, questions=tuple(replace(own, topic="") for own in series))
    plain = pad(without, 40).questions
    asked = pad(series, 40, same_topic=True).questions
    assert [question.texts for question in asked] == [question.texts for question in plain]


def test_text_that_two_topics_share_is_excluded_from_both() -> None:
    shared = QuestionSet(
        "shared",
        (
            Question("1.1", "one", (Candidate("0", "Alpha."),), topic="1"),
            Question("1.2", "two", (Candidate("0", "Both."),), topic="1"),
            Question("2.1", "three", (Candidate("0", "Both."),), topic="2"),
            Question("3.1", "four", (Candidate("0", "Gamma."), Candidate("1", "Delta."))),
        ),
    )
    first = pad(shared, 3).questions[0]
    assert {candidate.text for candidate in added(first)} == {"Gamma.", "Delta."}


def test_blank_texts_are_not_added() -> None:
    blank = make_set([("a", {"": 0, "One.": 1}), ("b", {"Two.": 1, " ": 0})])
    first, second = pad(blank, 3)
    assert [candidate.text for candidate in added(first) + added(second)] == ["Two.", "One."]


def test_padding_twice_keeps_ids_unique() -> None:
    for question in pad(pad(WIDE, 30), 100, seed=1):
        assert len({candidate.id for candidate in question.candidates}) == 100


def test_ids_with_slashes_stay_unique() -> None:
    odd = QuestionSet(
        "odd",
        (
            Question("a", "one", (Candidate("b/0", "One."),)),
            Question("a/b", "two", (Candidate("0", "Two."),)),
            Question("c", "three", (Candidate("0", "Three."),)),
        ),
    )
    ids = [candidate.id for candidate in pad(odd, 3).questions[2].candidates]
    assert sorted(ids) == ["0", "pad:a/b/0", "pad:a/b/0'"]


def test_too_few_texts_name_the_possible_length() -> None:
    message = (
        r"Cannot pad to 500: tiny has 240 distinct texts, so question 'q0' can get "
        r"at most 240 candidates\. Pad to 240 or fewer, or pad before filtering\."
    )
    with pytest.raises(InputError, match=message):
        pad(WIDE, 500)
    assert {len(question.candidates) for question in pad(WIDE, 240)} == {240}


@pytest.mark.parametrize(
    ("to", "seed", "message"),
    [(0, 0, "`to` must be at least 1, got 0"), (5, -1, "`seed` must be at least 0, got -1")],
)
def test_invalid_numbers_are_refused(to: int, seed: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pad(WIDE, to, seed=seed)


words = st.sampled_from(["ant", "bee", "cow", "Cow", "dog", "eel", "fox", "gnu", "hen", " "])


@pytest.mark.slow
@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(words, st.dictionaries(words, st.integers(0, 1))), min_size=1),
    to=st.integers(1, 9),
    seed=st.integers(0, 3),
)
def test_padding_invariants_hold_for_any_set(
    rows: list[tuple[str, dict[str, int]]], to: int, seed: int
) -> None:
    question_set = make_set(rows)
    try:
        padded = pad(question_set, to, seed=seed)
    except InputError:
        return
    for before, after in zip(question_set, padded, strict=True):
        assert len(after.candidates) == max(to, len(before.candidates))
        own = [text.lower() for text in before.texts]
        new = [candidate.text.lower() for candidate in added(after)]
        assert not set(own) & set(new)
        assert len(new) == len(set(new))
        assert tuple(c for c in after.candidates if c not in added(after)) == before.candidates
