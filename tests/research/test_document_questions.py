"""Questions to document sets: when an answer is right, the question file, and the measurement."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from research.benchmarks.document_questions import ask_all, check_gold, draw_units, summary
from research.document_questions.build import SETS
from research.document_questions.questions import (
    KINDS,
    DocumentQuestion,
    Gold,
    is_right,
    load_questions,
)

GOLD = (Gold("Rinse the filter with cold water every two weeks", "care/*.md"),)


@pytest.mark.parametrize(
    ("text", "file", "right"),
    [
        ("Rinse the *filter* with\n`cold water` every two weeks!", "care/filter.md", True),
        ("First, rinse the filter with cold water every two weeks.", "care/filter.md", True),
        ("the filter with cold water", "care/filter.md", True),
        ("the filter", "care/filter.md", False),
        ("Rinse the filter with cold water every two weeks.", "parts.md", False),
        ("Rinse the filter.", "care/filter.md", False),
        ("Rinse the filter with cold water every two weeks. " * 30, "care/filter.md", False),
    ],
    ids=["markup", "contains", "part", "short part", "other file", "other text", "too long"],
)
def test_an_answer_is_right_if_it_is_a_gold_sentence(text: str, file: str, right: bool) -> None:
    assert is_right(text, file, GOLD) is right


def test_gold_that_stands_anywhere_needs_no_file() -> None:
    gold = (Gold(GOLD[0].text, "care/*.md", anywhere=True),)
    assert is_right(GOLD[0].text, "parts.md", gold)


def test_the_questions_are_whole() -> None:
    questions = load_questions()
    assert len({each.id for each in questions}) == len(questions)
    assert len({each.question for each in questions}) == len(questions)
    assert {each.set for each in questions} <= {each.name for each in SETS}
    assert {each.kind for each in questions} <= set(KINDS)
    halves = Counter(each.half for each in questions if each.answerable)
    assert abs(halves["dev"] - halves["test"]) <= len(SETS)


@pytest.mark.slow
def test_questions_are_asked_of_the_index_of_their_set(tmp_path: Path) -> None:
    home = tmp_path / "corpus" / "kettle"
    home.mkdir(parents=True)
    (home / "care.md").write_text("# Care\n\nRinse the filter every two weeks. Do not use soap.\n")
    (home / "parts.md").write_text("# Parts\n\nThe lid is made of steel.\n")
    questions = [
        DocumentQuestion("kettle-01", "kettle", "how", text, gold)
        for text, gold in [
            ("When do I rinse the filter?", (Gold("Rinse the filter every two weeks", "care.md"),)),
        ]
    ]
    nobody = DocumentQuestion("kettle-03", "kettle", "factoid", "What does the lid cost?", ())
    indexes = tmp_path / "indexes"
    asked = ask_all([*questions, nobody], tmp_path / "corpus", indexes, None)
    figures = summary(asked, {"kettle-01"})
    assert figures["all"][0]["number"] == 1
    assert figures["all"][0]["right@1"] == 100.0
    assert figures["refusals"][0] == {"of": "unanswerable questions", "number": 1, "refused": 0.0}
    assert check_gold(questions, tmp_path / "corpus", indexes) == []
    units = draw_units(20, tmp_path / "corpus", indexes)
    assert units == draw_units(20, tmp_path / "corpus", indexes)
    assert sorted((unit.headings, unit.text) for unit in units) == [
        (("Care",), "Do not use soap."),
        (("Care",), "Rinse the filter every two weeks."),
        (("Parts",), "The lid is made of steel."),
    ]
