"""The data of the French recipes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from research.recipes.french.phrases import translated_pairs
from research.recipes.french.text import untokenized


@pytest.mark.parametrize(
    ("tokenized", "expected"),
    [
        ("what is in front of it ?", "What is in front of it?"),
        ("notre dame 's dome does n't shine .", "Notre dame's dome doesn't shine."),
        ("the legend `` ad me '' -lrb- 1842 -rrb- , too", 'The legend "ad me" (1842), too'),
        ("it cost $ 10 million , or 5 %", "It cost $10 million, or 5%"),
        ("", ""),
    ],
)
def test_spaces_of_tokenized_text_are_repaired(tokenized: str, expected: str) -> None:
    assert untokenized(tokenized) == expected


def test_questions_to_the_same_sentence_share_it(tmp_path: Path) -> None:
    path = tmp_path / "translated.jsonl"
    rows = [
        ("Qui ?", "Emma est un roman.", "Emma is a novel."),
        ("Où ?", "Paris est une ville.", "Paris is a city."),
        ("Quoi ?", "Emma est un roman.", "Emma is a novel."),
        ("", "Sans question.", "Without a question."),
    ]
    keys = ("question", "sentence", "english_sentence")
    lines = [json.dumps(dict(zip(keys, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    (found,) = translated_pairs(path)
    assert found.text == "Emma est un roman. Paris est une ville."
    asked = [(question, found.text[a:b]) for _, question, (a, b) in found.questions]
    assert asked == [
        ("Qui ?", "Emma est un roman."),
        ("Quoi ?", "Emma est un roman."),
        ("Où ?", "Paris est une ville."),
    ]
    assert translated_pairs(None) == []
