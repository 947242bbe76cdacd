from __future__ import annotations

import pytest

from askline.cli.follow_up import complete_question

MUSEUM = "When is the museum open in winter?"
TICKETS = "How much are tickets for adults?"
LIGHTHOUSE = "When was the first lighthouse lit?"
OPTION = "What does the timeout option do?"


@pytest.mark.parametrize(
    ("previous", "follow_up", "whole"),
    [
        (MUSEUM, "and in summer?", "When is the museum open in summer?"),
        (MUSEUM, "In summer?", "When is the museum open In summer?"),
        (MUSEUM, "what about summer?", "When is the museum open in summer?"),
        (MUSEUM, "How about the café?", "When is the café open in winter?"),
        (MUSEUM, "And on Sundays?", "When is the museum open in winter on Sundays?"),
        (MUSEUM, "why?", "Why is the museum open in winter?"),
        (MUSEUM, "who founded it", "Who founded the museum?"),
        (TICKETS, "and for families?", "How much are tickets for families?"),
        (TICKETS, "what about children?", "How much are tickets for children?"),
        (TICKETS, "where can they be bought?", "Where can tickets be bought?"),
        (LIGHTHOUSE, "and the second one?", "When was the second lighthouse lit?"),
        (LIGHTHOUSE, "so how tall is it?", "How tall is the first lighthouse?"),
        ("Who founded the museum?", "since when?", "Who founded the museum, and since when?"),
        ("Who wrote Emma?", "and Persuasion?", "Who wrote Persuasion?"),
        ("Who wrote Emma?", "When was it written?", "When was Emma written?"),
        ("How do I set the timeout?", "what is its default?", "What is the timeout's default?"),
        (OPTION, "and its default?", "What is the timeout option's default?"),
        ("opening hours", "and prices?", "Opening hours prices?"),
    ],
)
def test_a_follow_up_becomes_a_whole_question(previous: str, follow_up: str, whole: str) -> None:
    assert complete_question(previous, follow_up) == whole


@pytest.mark.parametrize(
    "question",
    [
        "How much are tickets for adults?",
        "opening hours",
        "Which towns have a station in France?",
        "And what is the price of a ticket?",
        "Who keeps the keys of it when the old keeper of the rock is away?",
        "this year?",
        "and",
        "?",
    ],
)
def test_a_question_that_stands_alone_is_unchanged(question: str) -> None:
    assert complete_question(LIGHTHOUSE, question) == question


def test_without_a_question_before_nothing_is_added() -> None:
    assert complete_question("", "and in summer?") == "and in summer?"
