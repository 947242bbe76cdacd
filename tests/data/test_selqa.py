from __future__ import annotations

from pathlib import Path

import pytest

from askline.data import read_selqa

from .samples import labels, problems, write_json

ROW = {"question": "Who?", "candidates": ["", "Ann.", "Bob."], "answers": [1]}


def test_empty_negatives_are_kept_by_default(tmp_path: Path) -> None:
    path = write_json(tmp_path / "s.json", [ROW, ROW])
    found = read_selqa(path)
    assert [question.id for question in found] == ["Q1", "Q2"]
    assert found.questions[0].texts == ["", "Ann.", "Bob."]
    assert labels(found.questions[0]) == [False, True, False]
    dropped = read_selqa(path, keep_empty=False).questions[1]
    assert (dropped.texts, labels(dropped)) == (["Ann.", "Bob."], [True, False])
    assert [candidate.id for candidate in dropped.candidates] == ["Q2-1", "Q2-2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": [3]}, "'answers' must be indexes from 0 to 2, got 3."),
        ({"answers": [-1]}, "'answers' must be indexes from 0 to 2, got -1."),
        ({"answers": ["1"]}, "'answers' must be indexes from 0 to 2, got '1'."),
        ({"answers": [0]}, "'candidates'[0] is an answer but empty. Fill it in."),
        (
            {"candidates": []},
            "'candidates' is an empty list. Add an entry, or remove the row.",
        ),
        ({"question": ""}, "'question' is empty. Fill it in, or remove it."),
    ],
)
def test_bad_entry_is_reported_with_its_position(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    path = write_json(tmp_path / "s.json", [ROW, ROW | changes, 5])
    assert problems(read_selqa, path) == [
        (0, f"[1]: {message}"),
        (0, "[2]: The entry must be a JSON object {…}, got a number."),
    ]


def test_document_of_another_structure_is_refused(tmp_path: Path) -> None:
    assert problems(read_selqa, write_json(tmp_path / "s.json", {"data": []})) == [
        (0, "Expected a JSON list of questions, got an object.")
    ]
    [(_, message)] = problems(read_selqa, write_json(tmp_path / "s.json", []))
    assert message.startswith("The file has no questions.")
