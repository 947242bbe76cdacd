from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askline.data import load_dataset, load_paragraphs
from askline.errors import InputError


def _paragraph(name: str) -> dict[str, Any]:
    context = f"This is {name}. It is short."
    answers = [{"text": "short", "answer_start": context.index("short")}]
    return {
        "context": context,
        "qas": [
            {"id": f"{name}-{place}", "question": "What is it?", "answers": answers}
            for place in range(3)
        ],
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """SQuADShifts' three files, two articles of one paragraph in each."""
    (tmp_path / "squadshifts").mkdir()
    for name in ("new_wiki", "reddit", "amazon_reviews"):
        articles = [
            {"title": f"{name} {number}", "paragraphs": [_paragraph(f"{name} {number}")]}
            for number in range(12)
        ]
        path = tmp_path / "squadshifts" / f"{name}_v1.0.json"
        path.write_text(json.dumps({"data": articles}))
    return tmp_path


@pytest.mark.parametrize("name", ["squadshifts", "squadshifts:train", "squadshifts:dev"])
def test_paragraphs_are_those_of_the_sets_questions(root: Path, name: str) -> None:
    paragraphs = load_paragraphs(name, root=root)
    asked = {question.id for paragraph in paragraphs for question in paragraph.questions}
    assert asked == {question.id for question in load_dataset(name, root=root)}


def test_a_file_in_the_format_may_be_named(root: Path) -> None:
    path = root / "squadshifts" / "reddit_v1.0.json"
    assert len(load_paragraphs(f"squadshifts:{path}")) == 12


@pytest.mark.parametrize("name", ["wikiqa:train", "questions.jsonl"])
def test_other_formats_have_no_paragraphs(name: str) -> None:
    assert load_paragraphs(name) == ()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which squad1:train is read from"):
        load_paragraphs("squad1:train", root=tmp_path)
