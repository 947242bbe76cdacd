from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from askline.corpus import Answer, AnswerPhrase, Answers

ANSWER = Answer(
    text="It was lit in 1698.",
    score=2.0,
    stage=1,
    probability=0.87,
    document="rock.txt",
    title="Rock",
    start=0,
    end=19,
    unit="line",
    number=3,
    heading="",
    before="The rock is far out.",
    after="A storm took it.",
    phrase=AnswerPhrase("1698", 14, 18),
)


class _Text(HTMLParser):
    """The visible text of a page, and the names of its tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_an_answer_shows_its_phrase_place_and_probability() -> None:
    html = ANSWER._repr_html_()
    assert "It was lit in <b>1698</b>." in html
    assert "rock.txt:3 · 87%" in html
    assert "The rock is far out." in html
    assert "A storm took it." in html


def test_an_answer_without_phrase_and_probability_is_shown() -> None:
    html = replace(ANSWER, phrase=None, probability=None, before="", after="")._repr_html_()
    assert "It was lit in 1698." in html
    assert "<b>" not in html
    assert "%" not in html


def test_html_escapes_everything() -> None:
    evil = "<script>alert('x')</script> & \"more\""
    answer = replace(
        ANSWER, text=evil, before=evil, after=evil, document=evil, phrase=AnswerPhrase(evil, 0, 9)
    )
    answer = replace(answer, record=evil, row=9)
    shown = _Text(Answers(evil, (answer, answer), (), 0.1)._repr_html_())
    assert "script" not in shown.tags
    assert evil in shown.texts


def test_html_sets_no_color() -> None:
    html = Answers("When?", (ANSWER, ANSWER), (), 0.1)._repr_html_()
    assert "color" not in html
    assert "background" not in html


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (Answers("When?", (), (), 0.1), "No sentence matches"),
        (Answers("When?", (ANSWER,), (), 0.1, threshold=0.9), "No answer found"),
    ],
    ids=["nothing retrieved", "below the threshold"],
)
def test_answers_say_if_there_is_no_answer(answers: Answers, message: str) -> None:
    assert message in answers._repr_html_()


def test_answers_show_the_question_and_every_answer() -> None:
    second = replace(ANSWER, text="It fell in 1703.", phrase=None)
    html = Answers("When was it lit?", (ANSWER, second), (), 0.1, threshold=0.5)._repr_html_()
    assert "When was it lit?" in html
    assert html.count("<li>") == 2
    assert "It fell in 1703." in html
