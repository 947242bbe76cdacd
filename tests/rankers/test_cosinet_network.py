from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from askline.engine.lexical_matches import LexicalMatches, TokenizedList
from askline.errors import ModelError
from askline.models.light_config import FEATURES, FirstStageConfig
from askline.models.word_vectors import WordVectors
from askline.rankers.cosinet import FirstStageNetwork

WORDS = ("the", "was", "renewed", "cancelled", "show", "harbour", "glades")
VECTORS = WordVectors.from_rows(WORDS, np.eye(7, 96, dtype=np.float32))
CONFIG = FirstStageConfig(dimensions=96, filters=2, terms=3, hidden=4, feedback=0.0)


def _lexical(config: FirstStageConfig) -> FirstStageNetwork:
    """Weights that use a single feature."""
    tensors = {name: np.zeros(shape, np.float32) for name, shape in config.shapes().items()}
    tensors["features.scale"] += 1
    tensors["direct.weight"][0, FEATURES.index("covered_here")] = 10
    return FirstStageNetwork(config, tensors)


def _scores(network: FirstStageNetwork, *texts: str) -> list[float]:
    listing = TokenizedList.of("the glades", texts, VECTORS)
    return [float(score) for score in network.scores(listing)]


def test_feedback_raises_candidates_similar_to_the_best() -> None:
    texts = ("the glades show", "the show was renewed", "the harbour was renewed")
    best, same_subject, other = _scores(_lexical(CONFIG), *texts)
    assert same_subject == other < best
    best, same_subject, other = _scores(_lexical(replace(CONFIG, feedback=1.0)), *texts)
    assert other < same_subject < best


def test_feedback_does_not_change_a_single_candidate() -> None:
    first = _scores(_lexical(CONFIG), "the glades")
    assert _scores(_lexical(replace(CONFIG, feedback=5.0)), "the glades") == first


def test_the_convolution_reads_the_first_words_of_a_long_candidate() -> None:
    network = _lexical(CONFIG)
    rng = np.random.default_rng(0)
    tensors = {
        **network.tensors,
        "candidate.weight": rng.normal(size=(2, 100, 5)).astype(np.float32),
    }
    listing = TokenizedList.of(
        "the glades", ["show " * 64, "show " * 64 + "harbour " * 900], VECTORS
    )

    short, long = FirstStageNetwork(CONFIG, tensors)._candidates(
        listing, LexicalMatches.of(listing)
    )
    assert short == pytest.approx(long, abs=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": ["length"]}, "was trained on the features"),
        ({"filters": 0}, "positive integer for filters"),
        ({"width": "5"}, "positive integer for width"),
        ({"feedback": -1}, "feedback as 0 or more, got -1"),
    ],
    ids=["features", "zero", "text", "feedback"],
)
def test_an_invalid_config_is_refused(change: dict[str, object], message: str) -> None:
    assert FirstStageConfig.from_config(CONFIG.to_config()) == CONFIG
    with pytest.raises(ModelError, match=message):
        FirstStageConfig.from_config(CONFIG.to_config() | change)
