from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.corpus import Corpus
from askline.corpus.bm25 import bm25_scores
from askline.corpus.question_terms import QuestionTerms, RetrievalOptions
from askline.corpus.retrieval import LexicalRetriever
from askline.corpus.similar_words import SimilarWords
from askline.corpus.text_match import (
    SentenceVectors,
    SplitTexts,
    cosines,
    load_sentence_vectors,
    match_texts,
)
from askline.models.word_vectors import WordVectors
from askline.text.words import split_identifiers

TERMS = QuestionTerms(
    frozenset(("film", "lamp")),
    {"film": 1.0, "lamp": 1.0},
    {"film": 2.0, "lamp": 1.0},
    {"film": 2.0, "lamp": 1.0},
    {},
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


@pytest.fixture
def vectors() -> SentenceVectors:
    rows = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    return SentenceVectors(WordVectors.from_rows(["pump", "water"], rows, unknown="zero"))


def test_the_vector_of_a_text_is_the_sum_of_its_words(vectors: SentenceVectors) -> None:
    texts = SplitTexts.of(["Water, pump water!", "", "An unknown pump", "nothing"])
    assert vectors.sums(texts).tolist() == [[1, 4], [0, 0], [1, 0], [0, 0]]
    assert vectors.sums(texts.take(np.array([2, 0]))).tolist() == [[1, 0], [1, 4]]
    assert vectors.sums(SplitTexts.of([])).shape == (0, 2)


def test_a_vector_of_zeros_is_similar_to_nothing() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]], np.float32)
    assert cosines(rows, rows[0]) == pytest.approx([1.0, 0.0, -0.8])
    assert cosines(rows, rows[1]).tolist() == [0.0, 0.0, 0.0]


def test_texts_are_taken_in_the_order_of_their_positions() -> None:
    split = SplitTexts.of(["a b c", "", "d", "e f"])
    taken = split.take(np.array([3, 1, 0]))
    assert taken.lengths.tolist() == [2, 0, 3]
    assert [split.words[at] for at in taken.tokens] == ["e", "f", "a", "b", "c"]
    assert len(split.take(np.zeros(0, np.int64)).tokens) == 0


def test_the_shipped_vectors_put_an_answer_before_a_sentence_with_the_same_words() -> None:
    question = "How much does it cost to park the car?"
    texts = ["The fee is five dollars per hour.", "The tree has green leaves in spring."]
    shipped = load_sentence_vectors()
    (asked,) = shipped.sums(SplitTexts.of([question]))
    answer, other = cosines(shipped.sums(SplitTexts.of(texts)), asked)
    assert answer > other


def test_sentence_vectors_decide_between_sentences_that_match_the_same_words() -> None:
    answer = "The car park takes five dollars."
    texts = {f"{n:02}": "The car park has green trees." for n in range(9)}
    with Corpus.in_memory() as corpus:
        corpus.add_texts({**texts, "fees": answer})
        store, search = corpus._store, corpus._storage.search_index()
        places = []
        for option in (True, False):
            options = RetrievalOptions(soft_match=0.0, sentence_vectors=option)
            retriever = LexicalRetriever(store, search, options)
            found = retriever.retrieve("How much money is the car park?", 10)
            assert [each.score for each in found] == sorted((e.score for e in found), reverse=True)
            places.append([each.text for each in found].index(answer))
        assert places[0] == 0 < places[1]
