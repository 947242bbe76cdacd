"""The CrossEncoder look-alike, beside the class of sentence-transformers."""

from __future__ import annotations

import asyncio
import inspect

import numpy as np
import pytest

import askline
from askline.errors import InputError
from askline.integrations.cross_encoder import CrossEncoder

QUESTION = "Who wrote Emma?"
TEXTS = ["Emma is a novel.", "It sold well.", "Jane Austen wrote Emma in 1815.", ""]


@pytest.mark.slow  # importing torch takes seconds
@pytest.mark.parametrize("method", ["predict", "rank"])
def test_arguments_have_the_names_and_defaults_of_sentence_transformers(method: str) -> None:
    import sentence_transformers

    theirs = inspect.signature(getattr(sentence_transformers.CrossEncoder, method)).parameters
    for name, parameter in inspect.signature(getattr(CrossEncoder, method)).parameters.items():
        names = {"sentences": "inputs"} if "inputs" in theirs else {}
        assert names.get(name, name) in theirs
        assert parameter.default == theirs[names.get(name, name)].default


def test_rank_gives_the_order_of_rank() -> None:
    found = CrossEncoder().rank(QUESTION, TEXTS, return_documents=True)
    hits = askline.load().rank(QUESTION, TEXTS)
    assert [each["corpus_id"] for each in found] == [hit.index for hit in hits]
    assert [each["text"] for each in found] == [hit.text for hit in hits]
    scores = [each["score"] for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert asyncio.run(CrossEncoder().arank(QUESTION, TEXTS, 2, True)) == found[:2]
    assert "text" not in CrossEncoder().rank(QUESTION, TEXTS, top_k=1)[0]


def test_a_pair_scores_the_same_in_any_company() -> None:
    model = CrossEncoder()
    pairs = [(QUESTION, text) for text in TEXTS] * 20
    together = model.predict(pairs)
    assert isinstance(together, np.ndarray)
    assert together.dtype == np.float32
    assert together.shape == (80,)
    alone = [model.predict(pair) for pair in pairs[:4]]
    assert together[:4] == pytest.approx(alone, abs=1e-5)
    assert ((together >= 0) & (together <= 1)).all()
    assert np.argmax(together[:4]) == 2


def test_a_pair_is_scored_at_full_depth() -> None:
    cascade = askline.load("cascade")
    expected = cascade.predict([(QUESTION, TEXTS[2])])
    assert CrossEncoder().predict((QUESTION, TEXTS[2])) == pytest.approx(expected[0], abs=1e-6)


def test_uncalibrated_scores_are_between_0_and_1() -> None:
    scores = CrossEncoder("jaccard").predict([[QUESTION, text] for text in TEXTS])
    assert 0.5 <= np.min(scores) < np.max(scores) <= 1


def test_no_pairs_give_no_scores() -> None:
    assert np.shape(CrossEncoder("jaccard").predict([])) == (0,)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="batch_size must be a positive integer, got 0"):
        CrossEncoder().predict([(QUESTION, "a")], batch_size=0)
    with pytest.raises(InputError, match="Pair 0 must be a question and a text"):
        CrossEncoder("jaccard").predict([("a", "b", "c")])
    with pytest.raises(InputError, match="cannot score pairs"):
        CrossEncoder("bm25").predict([(QUESTION, "a")])
