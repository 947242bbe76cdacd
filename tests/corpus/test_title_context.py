from __future__ import annotations

import pytest

from askline.corpus import RetrievedSentence
from askline.corpus.title_context import SentenceInContext, add_title_context


def _found(text: str, title: str = "", heading: str = "") -> RetrievedSentence:
    return RetrievedSentence("a.md", 0, text, 0, len(text), "line", 1, heading, title, 1.0)


@pytest.mark.parametrize(
    ("found", "lead"),
    [
        (_found("MIT.", "Tidepool", "Licence"), "Tidepool · Licence: "),
        (_found("Tidepool has the MIT licence.", "Tidepool", "Licence"), ""),
        (_found("Its licences are free.", "Tidepool", "Licence"), "Tidepool: "),
        (_found("It is MIT.", "The travel policy", "What is it for?"), ""),
        (_found("It is MIT.", "Licence", "Licence"), "Licence: "),
        (_found("It is MIT.", "tidepool_licence-2.txt"), "tidepool licence 2: "),
        (_found("It is MIT.", "On Tidepool v.Two"), "On Tidepool v.Two: "),
        (_found("It is MIT."), ""),
    ],
    ids=[
        "both",
        "neither is needed",
        "one",
        "empty words",
        "twice",
        "file name",
        "title",
        "nothing above",
    ],
)
def test_what_stands_above_comes_along_where_the_question_asks_for_it(
    found: RetrievedSentence, lead: str
) -> None:
    (said,) = add_title_context("What licence does Tidepool have?", [found])
    assert said == SentenceInContext(lead + found.text, len(lead))


def test_columns_come_along_with_their_row() -> None:
    row = _found("Norway | €71", "Travel", "Expenses · Country | Daily allowance")
    (said,) = add_title_context("What is the daily allowance in Norway?", [row])
    assert said.text == "Expenses · Country | Daily allowance: Norway | €71"


def test_nothing_is_read_without_end() -> None:
    (said,) = add_title_context("Which lamp?", [_found("x " * 9_000, "lamp " * 900)])
    assert (said.sentence_start, len(said.text)) == (202, 4_202)
