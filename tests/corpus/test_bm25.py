from __future__ import annotations

import math

import pytest

from askline.corpus.bm25 import bm25_scores, inverse_document_frequency, stem_texts


def test_stemmed_keeps_every_word_in_its_place() -> None:
    stems = {"lamps": "lamp", "the": ""}
    result = stem_texts(["The lamps, the oil", "", "Lamps!"], lambda word: stems.get(word, word))
    assert result == [["", "lamp", "", "oil"], [], ["lamp"]]


def test_bm25_by_hand() -> None:
    # Average length 2; for the first text 1.2 · (0.25 + 0.75 · 3/2) = 1.65, the second 1.2 · 0.625.
    scores = bm25_scores([["lamp", "lamp", "x"], ["oil"]], {"lamp": 2.0, "oil": 1.0})
    assert scores == pytest.approx([2.0 * 2 * 2.2 / (2 + 1.65), 2.2 / (1 + 0.75)])
    assert bm25_scores([["x"], []], {"lamp": 2.0}) == [0.0, 0.0]
    assert bm25_scores([], {}) == []


def test_rare_terms_weigh_more_and_every_weight_is_positive() -> None:
    weights = [inverse_document_frequency(count, 10) for count in (1, 5, 10)]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] == pytest.approx(math.log(1 + 9.5 / 1.5))
    assert weights[-1] > 0
