from __future__ import annotations

import numpy as np
import pytest

from askline.corpus.similar_words import SimilarWords, load_similar_words
from askline.models.word_vectors import WordVectors


@pytest.fixture
def words() -> SimilarWords:
    """Two directions: founding, and numbness; `film` and `movie` are nearly the same."""
    rows = {
        "founder": [1.0, 0.0, 0.0],
        "founded": [0.8, 0.6, 0.0],
        "number": [0.0, 1.0, 0.0],
        "numb": [1.0, 0.0, 0.0],
        "film": [0.0, 0.0, 1.0],
        "movie": [0.0, 0.1, 0.99],
    }
    return SimilarWords(WordVectors.from_rows(list(rows), np.array(list(rows.values()), "f")))


def test_a_derivation_needs_the_same_base_and_a_near_vector(words: SimilarWords) -> None:
    assert [word for word, _ in words.derived("founder")] == ["founded"]
    assert words.derived("number") == []  # numb is far
    assert words.derived("film") == []
    assert words.derived("unheard") == []


def test_the_soft_match_takes_the_best_word_of_each_text(words: SimilarWords) -> None:
    texts = [["the", "movie"], ["film"], [], ["number"], ["unheard", "film"]]
    scores = words.match({"film": 2.0, "unheard": 1.0}, texts)
    assert scores == pytest.approx([1.99, 2.0, 0.0, 0.0, 3.0], abs=0.01)
    assert words.match({}, texts) == [0.0] * 5
    assert words.match({"film": 1.0}, []) == []


@pytest.mark.parametrize(
    ("word", "form"),
    [("founder", "founded"), ("install", "installer"), ("configure", "configuration")],
)
def test_the_shipped_vectors_know_derivations(word: str, form: str) -> None:
    assert form in dict(load_similar_words().derived(word))
