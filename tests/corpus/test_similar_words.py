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


def test_cosines_of_words_that_are_far_are_zero_and_a_word_is_like_itself(
    words: SimilarWords,
) -> None:
    found = words.cosines(["film", "unheard"], ["the", "movie", "film", "number", "unheard"])
    assert found.tolist() == [
        pytest.approx([0.0, 0.995, 1.0, 0.0, 0.0], abs=0.01),
        [0.0, 0.0, 0.0, 0.0, 1.0],
    ]
    assert words.cosines([], ["film"]).shape == (0, 1)
    assert words.cosines(["film"], []).shape == (1, 0)


@pytest.mark.parametrize(
    ("word", "form"),
    [("founder", "founded"), ("install", "installer"), ("configure", "configuration")],
)
def test_the_shipped_vectors_know_derivations(word: str, form: str) -> None:
    assert form in dict(load_similar_words().derived(word))
