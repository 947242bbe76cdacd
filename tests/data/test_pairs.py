from __future__ import annotations

from pathlib import Path

from askline.data import read_pairs

from .samples import labels, problems, write


def test_a_pair_is_a_question_with_one_answer(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", '{"question": "Who?", "sentence": "Ann did."}')
    [question] = read_pairs(path)
    assert (question.id, question.text, question.texts) == ("Q1", "Who?", ["Ann did."])
    assert labels(question) == [True]


def test_bad_pairs_are_all_named(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", '{"question": "Who?"}', '{"question": "", "sentence": "x"}')
    assert problems(read_pairs, path) == [
        (1, "No 'sentence', only 'question'. Add it to the row."),
        (2, "'question' is empty. Fill it in, or remove it."),
    ]
