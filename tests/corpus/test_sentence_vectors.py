from __future__ import annotations

import numpy as np
import pytest

from askline.corpus import Corpus
from askline.corpus.question_terms import RetrievalOptions
from askline.corpus.retrieval import LexicalRetriever
from askline.corpus.sentence_vectors import SentenceVectors, cosines, load_sentence_vectors
from askline.corpus.text_match import SplitTexts
from askline.models.word_vectors import WordVectors


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
