from __future__ import annotations

from dataclasses import replace

import pytest

from askline.corpus import RetrievedSentence
from askline.corpus.title_context import SentenceInContext, add_title_context, title_path


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
def test_title_and_heading_are_added_if_they_share_words_with_the_question(
    found: RetrievedSentence, lead: str
) -> None:
    (result,) = add_title_context("What licence does Tidepool have?", [found])
    assert result == SentenceInContext(lead + found.text, len(lead))


def test_column_names_are_added_to_a_table_row() -> None:
    row = _found("Norway | €71", "Travel", "Expenses · Country | Daily allowance")
    (result,) = add_title_context("What is the daily allowance in Norway?", [row])
    assert result.text == "Expenses · Country | Daily allowance: Norway | €71"


def test_the_path_and_the_lead_in_are_added_if_they_have_new_words() -> None:
    item = replace(
        _found("apt", "Tidepool guide", "Linux"),
        headings=("Tidepool guide", "Install", "Linux"),
        lead_in="You can install it with:",
    )
    (result,) = add_title_context("How do I install Tidepool on Linux?", [item])
    assert result.text == "Tidepool guide · Linux · You can install it with: apt"
    assert result.text[result.sentence_start :] == "apt"


def test_long_sentences_and_titles_are_truncated() -> None:
    (result,) = add_title_context("Which lamp?", [_found("x " * 9_000, "lamp " * 900)])
    assert (result.sentence_start, len(result.text)) == (202, 4_202)


@pytest.mark.parametrize(
    ("title", "headings", "heading", "path"),
    [
        ("travel-policy.txt", (), "", "travel policy"),
        ("Policy", ("Policy", "Trains"), "Trains", "Policy > Trains"),
        ("Policy", ("Trains",), "Trains · class, price", "Policy > Trains · class, price"),
        ("Policy", (), "Trains", "Policy > Trains"),
        ("", (), "", ""),
        ("T" * 150, ("H" * 40, "I" * 40), "I" * 40, f"{'H' * 40} > {'I' * 40}"),
        ("T" * 300, (), "", "T" * 200),
    ],
    ids=["file name", "title again", "columns", "heading", "nothing", "long path", "long title"],
)
def test_the_path_of_a_passage_ends_with_the_nearest_heading(
    title: str, headings: tuple[str, ...], heading: str, path: str
) -> None:
    assert title_path(replace(_found("x", title, heading), headings=headings)) == path
