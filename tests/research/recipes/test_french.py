"""The data of the French recipes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from research.recipes.french import text
from research.recipes.french.arrays import set_items
from research.recipes.french.phrases import lost_answers, translated_pairs, with_answers
from research.recipes.french.text import kept_answer, translate_sets, untokenized


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


def test_pairs_with_a_known_question_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "translated.jsonl"
    row = {"sentence": "Emma est un roman.", "english_sentence": "Emma."}
    asked = [("Quoi ?", "What is Emma?"), ("Qui ?", "Who wrote it?")]
    rows = [row | {"question": own, "english_question": english} for own, english in asked]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (found,) = translated_pairs(path, {"what is emma ?"})
    assert [question for _, question, _ in found.questions] == ["Qui ?"]


@pytest.mark.parametrize(
    ("english", "french", "expected"),
    [
        ("the north", "Le nord.", "le nord"),
        ("north", "la nord", "nord"),  # another article than in the sentence
        ("Emma", "Emmanuelle", "Emma"),  # names stay as they are
        ("east", "est", None),
    ],
)
def test_the_answer_is_found_in_the_translated_sentence(
    english: str, french: str, expected: str | None
) -> None:
    assert kept_answer("Emma habite dans le nord.", english, french) == expected


def test_a_translated_set_becomes_passages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    french = {
        "Emma lives here.": "Emma habite ici.",
        "She sings.": "Elle chante.",
        "Who lives here?": "Qui habite ici ?",
        "What does she do?": "Que fait-elle ?",
        "Emma": "Emma",
        "sings": "sonne",
    }

    class Dictionary:
        def __init__(self, model: Path) -> None: ...

        def __call__(self, texts: Iterable[str]) -> dict[str, str]:
            return {each: french[each] for each in texts}

    monkeypatch.setattr(text, "Translator", Dictionary)
    context = "Emma lives here.  She sings."
    asked = [("Who lives here?", "Emma"), ("What does she do?", "sings"), ("Both?", "here.  She")]
    qas = [
        {
            "question": question,
            "answers": [{"text": answer, "answer_start": context.index(answer)}],
        }
        for question, answer in asked
    ]
    qas.append({"question": "Why?", "answers": []})
    source, path = tmp_path / "own.json", tmp_path / "sets.jsonl"
    source.write_text(
        json.dumps({"data": [{"paragraphs": [{"context": context, "qas": qas}]}]}), "utf-8"
    )
    path.write_text("\n".join(map(json.dumps, translate_sets(tmp_path, [source]))), "utf-8")
    (item,) = set_items(path)
    assert item.passage.sentences == ("Emma habite ici.", "Elle chante.")
    assert item.english == ["Emma lives here.", "She sings."]
    assert item.questions == ["Who lives here?", "What does she do?"]  # each in one sentence
    (answered,) = with_answers([item])
    ((question,),) = [answered.questions]
    assert question.text == "Qui habite ici ?"
    assert [answer.text for answer in question.answers] == ["Emma"]
    (lost,) = lost_answers([item])
    ((_, asked_again, (start, end)),) = lost.questions
    assert (asked_again, lost.text[start:end]) == ("Que fait-elle ?", "Elle chante.")
