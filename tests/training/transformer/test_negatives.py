from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askline.errors import InputError
from askline.training.transformer.sampled_lists import Negatives, mine_negatives, sentence_pool
from askline.types import Candidate, Question, Source

# Article, question, gold phrase, and the sentences of its paragraph, the answer first.
ROWS = [
    ("Emma#0", "Who wrote Emma?", "Jane Austen", ["Jane Austen wrote Emma in Surrey.", "It sold."]),
    ("Emma#1", "When did Emma come out?", "1815", ["Emma came out in 1815 in London."]),
    ("Emma#2", "Where was Emma set?", "Highbury", ["The village of Emma is called Highbury."]),
    ("Dune#0", "Who wrote Dune?", "Herbert", ["Frank Herbert wrote Dune in Oregon."]),
    ("", "who wrote emma ?", "", ["the novelist jane austen wrote emma ."]),
    ("Sea#0", "Which seas are cold?", "Arctic", ["The Arctic is cold all year round."]),
    ("Sea#1", "Which fish swim there?", "Cod", ["Cod swim far up north all year."]),
]


def _question(number: int, article: str, text: str, phrase: str, sentences: list[str]) -> Question:
    candidates = tuple(
        Candidate(
            f"{number}-{place}",
            sentence,
            is_answer=place == 0,
            source=Source(article, 0, len(sentence)) if article else None,
        )
        for place, sentence in enumerate(sentences)
    )
    return Question(f"Q{number}", text, candidates, (phrase,) if phrase else ())


@pytest.fixture
def asked() -> list[Question]:
    # Enough other sentences that the words of the questions are not too common to search by.
    others = [
        ("", f"What is thing {n}?", "", [f"Thing {n} lies far under hill {n}."]) for n in range(50)
    ]
    return [_question(number, *row) for number, row in enumerate([*ROWS, *others])]


def _texts(asked: list[Question], places: np.ndarray) -> list[str]:
    pool = sentence_pool(asked)
    return [pool[place] for place in places if place >= 0]


def test_the_pool_has_each_sentence_once_and_no_scraps(asked: list[Question]) -> None:
    pool = sentence_pool([*asked, asked[0]])
    assert pool == sorted(set(pool))
    assert "Jane Austen wrote Emma in Surrey." in pool
    assert "It sold." not in pool


def test_hard_negatives_share_words_and_hold_no_answer(asked: list[Question]) -> None:
    found = mine_negatives(asked)
    emma = _texts(asked, found.hard[0])
    assert not any("Jane" in text or "jane" in text for text in emma)
    assert {"Emma came out in 1815 in London."} <= set(emma)


def test_near_negatives_are_of_the_same_article(asked: list[Question]) -> None:
    found = mine_negatives(asked)
    assert sorted(_texts(asked, found.near[0])) == [
        "Emma came out in 1815 in London.",
        "The village of Emma is called Highbury.",
    ]
    assert found.near[4].tolist() == [-1] * 8  # has no article
    assert found.near[3].tolist() == [-1] * 8  # its article has nothing else


def test_a_question_without_search_results_has_no_negatives(asked: list[Question]) -> None:
    odd = replace(asked[0], text="Quo vadis?")
    assert mine_negatives([odd, *asked[1:]]).hard[0].tolist() == [-1] * 12


def test_mining_is_repeatable_and_survives_the_file(tmp_path: Path, asked: list[Question]) -> None:
    path = tmp_path / "negatives.npz"
    found = mine_negatives(asked)
    mine_negatives(asked).save(path)
    loaded = Negatives.load(path, asked)
    assert np.array_equal(loaded.hard, found.hard)
    assert np.array_equal(loaded.near, found.near)


def test_negatives_of_other_questions_are_refused(tmp_path: Path, asked: list[Question]) -> None:
    path = tmp_path / "negatives.npz"
    mine_negatives(asked).save(path)
    with pytest.raises(InputError, match="of other questions"):
        Negatives.load(path, asked[1:])


@pytest.mark.parametrize(
    "content", [b"", b"no archive", b"PK\x03\x04cut"], ids=["empty", "text", "cut"]
)
def test_other_files_are_refused(tmp_path: Path, asked: list[Question], content: bytes) -> None:
    path = tmp_path / "negatives.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as a file of negatives"):
        Negatives.load(path, asked)
