from __future__ import annotations

import numpy as np
import pytest

from askline.engine.lexical_matches import LexicalMatches, TokenizedList, feature_matrix
from askline.engine.numpy_ops import FloatArray
from askline.models.light_config import FEATURES
from askline.models.word_vectors import WordVectors

WORDS = ("the", "of", "was", "lit", "lamp", "sea", "ocean", "tower")
_RNG = np.random.default_rng(0)
VECTORS = WordVectors.from_rows(WORDS, np.linalg.qr(_RNG.normal(size=(8, 8)))[0].astype(np.float32))


def _features(question: str, *candidates: str) -> FloatArray:
    listing = TokenizedList.of(question, candidates, VECTORS)
    return feature_matrix(listing, LexicalMatches.of(listing))


def _column(name: str, question: str, *candidates: str) -> list[float]:
    return [float(value) for value in _features(question, *candidates)[:, FEATURES.index(name)]]


@pytest.mark.parametrize(
    ("name", "better", "worse"),
    [
        ("covered", "the sea tower", "the lamp"),
        ("covered_here", "the sea tower", "the lamp"),
        ("exact_here", "the sea tower", "the sea"),
        ("bm25", "sea tower", "the of was sea tower lamp lit"),
        ("jaccard", "sea tower", "sea tower lamp lit"),
        ("pairs", "the sea tower", "tower the sea"),
        ("length", "of the lamp", "lamp"),
        ("on_topic", "sea tower", "sea tower lamp lit"),
        ("topic_mass", "sea tower", "sea"),
        ("centroid", "sea tower", "lamp lit"),
        ("first", "tower", "lamp"),
    ],
)
def test_a_feature_prefers_the_better_candidate(name: str, better: str, worse: str) -> None:
    high, low, _ = _column(name, "the sea tower", better, worse, "of")
    assert high > low


def test_feedback_raises_candidates_about_the_same_subject() -> None:
    texts = ("the sea tower zanzibar", "zanzibar was lit", "kairo was lit", "of the lamp")
    for name in ("feedback_words", "feedback_centroid"):
        column = _column(name, "sea tower", *texts)
        assert column[1] > column[2], name


def test_bigrams_do_not_cross_candidates() -> None:
    assert _column("pairs", "sea tower", "the sea", "tower of") == [0, 0]


def test_order_of_the_candidates_does_not_matter() -> None:
    texts = ["the sea", "tower lamp lit", "sea tower", "", "ocean of sea sea"]
    forth = _features("was the sea tower lit", *texts)
    back = _features("was the sea tower lit", *texts[::-1])
    assert forth == pytest.approx(back[::-1], abs=1e-5)


@pytest.mark.parametrize("question", ["", "sea", "sea sea", "of the"], ids=repr)
@pytest.mark.parametrize(
    "texts", [[""], ["…", ""], ["sea"], ["sea"] * 3, ["of"]], ids=lambda texts: repr(texts)
)
def test_features_are_finite_for_every_list(question: str, texts: list[str]) -> None:
    values = _features(question, *texts)
    assert values.shape == (len(texts), len(FEATURES))
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
