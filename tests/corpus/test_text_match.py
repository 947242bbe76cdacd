from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.corpus.bm25 import bm25_scores
from askline.corpus.question_terms import QuestionTerms
from askline.corpus.similar_words import SimilarWords
from askline.corpus.text_match import SplitTexts, match_texts
from askline.models.word_vectors import WordVectors
from askline.text.words import split_identifiers

TERMS = QuestionTerms(
    frozenset(("film", "lamp")),
    {"film": 1.0, "lamp": 1.0},
    {"film": 2.0, "lamp": 1.0},
    {"film": 2.0, "lamp": 1.0},
)


@pytest.fixture
def similar() -> SimilarWords:
    """`film` and `movie` are nearly the same; `lamp` has no vector."""
    rows = {"film": [0.0, 1.0], "movie": [0.1, 0.99], "number": [1.0, 0.0]}
    return SimilarWords(WordVectors.from_rows(list(rows), np.array(list(rows.values()), "f")))


def unchanged(word: str) -> str:
    return word


@given(st.lists(st.text(alphabet="ab A_.-\0\n\u00e9中", max_size=12), max_size=6))
def test_texts_split_at_once_have_the_words_of_each_text(texts: list[str]) -> None:
    split = SplitTexts.of(texts)
    ends = np.cumsum(split.lengths)
    words = [[split.words[at] for at in part] for part in np.split(split.tokens, ends[:-1])]
    assert len(split.lengths) == len(texts)
    for own, text in zip(words, texts, strict=False):
        assert sorted(own) == sorted(split_identifiers(text))


def test_the_score_is_bm25_plus_the_best_cosine_of_each_question_word(
    similar: SimilarWords,
) -> None:
    texts = ["the movie", "film film", "", "number", "lamp and movie"]
    found = match_texts(texts, TERMS, unchanged, similar)
    bm25 = bm25_scores([text.split() for text in texts], TERMS.weights)
    soft = [1.99, 2.0, 0.0, 0.0, 2.99]
    assert found.scores(0.5) == pytest.approx(
        [own + 0.5 * match for own, match in zip(bm25, soft, strict=True)], abs=0.01
    )
    assert match_texts(texts, TERMS, unchanged, None).scores(0.5) == pytest.approx(bm25)
    assert match_texts([], TERMS, unchanged, similar).scores(1.0).shape == (0,)


def test_a_text_that_has_only_words_of_the_question_repeats_it() -> None:
    found = match_texts(["film, lamp!", "film lamp off", ""], TERMS, unchanged, None)
    assert found.repeats.tolist() == [True, False, True]


def test_a_context_adds_its_words_to_each_text_under_it(similar: SimilarWords) -> None:
    texts, contexts = ["it is old", "the lamp"], ["film", "number"]
    both = match_texts(texts, TERMS, unchanged, similar).under(
        match_texts(contexts, TERMS, unchanged, similar), np.array([0, 1])
    )
    together = match_texts(["it is old film", "the lamp number"], TERMS, unchanged, similar)
    assert both.scores(1.0) == pytest.approx(together.scores(1.0))
    assert both.repeats.tolist() == together.repeats.tolist()
