"""The published counts of every set, over the real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from askline.data import (
    compute_statistics,
    filter_questions,
    hold_out,
    load_dataset,
    read_paragraphs,
)
from askline.types import QuestionSet


@pytest.mark.parametrize(
    ("name", "questions", "candidates", "answerable", "both"),
    [
        ("wikiqa:train", 2118, 20360, 873, 857),
        ("wikiqa:dev", 296, 2733, 126, 122),
        ("wikiqa:test", 633, 6165, 243, 237),
        ("trecqa:train", 94, 4718, 83, 78),
        ("trecqa:train-all", 1229, 53417, 1229, 1161),
        ("trecqa:dev", 82, 1148, 78, 65),
        ("trecqa:test", 100, 1517, 89, 68),
        ("trecqa-clean:dev", 65, 1117, 65, 65),
        ("trecqa-clean:test", 68, 1442, 68, 68),
        ("squad-pairs:train", 20467, 20467, 20467, 0),
        ("selqa:dev", 785, 9419, 785, 785),
    ],
)
def test_sentence_sets(
    data_root: Path, name: str, questions: int, candidates: int, answerable: int, both: int
) -> None:
    found = compute_statistics(load_dataset(name, root=data_root))
    assert (found.questions, found.candidates) == (questions, candidates)
    assert (found.answerable, found.both) == (answerable, both)


@pytest.mark.parametrize(
    ("name", "questions", "answerable"),
    [
        ("squad1:train", 4000, 4000),
        ("squad1:dev", 10570, 10570),
        ("squad2:dev", 11873, 5928),
        ("squadshifts:new_wiki", 7938, 7938),
        ("squadshifts:reddit", 9803, 9803),
        ("squadshifts:amazon", 9885, 9885),
        ("fquad:valid", 3188, 3188),
    ],
)
def test_paragraph_sets(data_root: Path, name: str, questions: int, answerable: int) -> None:
    found = load_dataset(name, root=data_root)
    assert (len(found), len(filter_questions(found, "answerable"))) == (questions, answerable)
    assert all(question.candidates for question in found)


def documents(question_set: QuestionSet) -> set[str]:
    return {
        candidate.source.document
        for question in question_set
        for candidate in question.candidates
        if candidate.source
    }


@pytest.mark.parametrize(("name", "questions"), [("piaf", 7569), ("squadshifts", 27626)])
def test_held_out_splits_are_disjoint_and_complete(
    data_root: Path, name: str, questions: int
) -> None:
    train, dev = (load_dataset(f"{name}:{split}", root=data_root) for split in ("train", "dev"))
    assert len(train) + len(dev) == questions
    assert 0.09 < len(dev) / questions <= 0.1
    assert not documents(train) & documents(dev)


@pytest.mark.parametrize("file", ["new_wiki", "reddit", "amazon_reviews"])
def test_no_paragraph_text_is_in_both_parts(data_root: Path, file: str) -> None:
    whole = read_paragraphs(data_root / "squadshifts" / f"{file}_v1.0.json")
    rest, held = hold_out(whole)
    assert not {p.text for p in rest.paragraphs} & {p.text for p in held.paragraphs}


def test_piaf_has_one_corrected_offset(data_root: Path) -> None:
    [repair] = read_paragraphs(data_root / "piaf" / "piaf-v1.1.json").repairs
    assert repair.message.endswith("is at 89, not at 90; the offset was corrected.")


@pytest.mark.parametrize(
    ("name", "row"),
    [("train", (873, 9.9, 1.2)), ("dev", (126, 9.0, 1.1)), ("test", (243, 9.7, 1.2))],
)
def test_wikiqa_matches_table_1_of_the_cascade_transformer(
    data_root: Path, name: str, row: tuple[int, float, float]
) -> None:
    found = compute_statistics(
        filter_questions(load_dataset(f"wikiqa:{name}", root=data_root), "answerable")
    )
    questions, candidates, positives = row
    assert found.questions == questions
    assert found.candidates_per_question == pytest.approx(candidates, abs=0.1)
    assert found.positives_per_question == pytest.approx(positives, abs=0.06)


def test_wikiqa_matches_table_2_of_cosinet(data_root: Path) -> None:
    found = compute_statistics(load_dataset("wikiqa:test", root=data_root))
    assert found.percent_answerable == pytest.approx(38.39, abs=0.005)
    assert found.candidates_per_question == pytest.approx(9.74, abs=0.005)
