from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.rankers.probability import log_odds, relevance_scores, sigmoid
from askline.types import Hit

STAGES = st.lists(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5), min_size=1, max_size=4
)


@given(STAGES, st.sets(st.integers(0, 4)))
def test_relevance_descends_and_is_between_0_and_1(
    stages: list[list[float]], calibrated: set[int]
) -> None:
    hits = [
        Hit(0, score, len(stages) - at)
        for at, scores in enumerate(stages)
        for score in sorted(scores, reverse=True)
    ]
    values = relevance_scores(hits, calibrated)
    assert len(values) == len(hits)
    assert all(0 <= value <= 1 for value in values)
    assert values == sorted(values, reverse=True)


def test_probabilities_are_used_as_they_are() -> None:
    assert relevance_scores([Hit(0, 0.9, 1), Hit(1, 0.2, 1)], {1}) == [0.9, 0.2]


def test_dropped_candidates_score_below_those_that_were_kept() -> None:
    hits = [Hit(2, 0.9, 1), Hit(0, 0.2, 1), Hit(1, 7.5, 0), Hit(3, -1.0, 0)]
    values = relevance_scores(hits, {1})
    assert values == pytest.approx([0.9, 0.2, 0.2 * sigmoid(7.5), 0.2 * sigmoid(-1.0)])


def test_a_probability_of_an_early_stage_is_used_if_it_is_lower() -> None:
    hits = [Hit(0, 0.9, 2), Hit(1, 0.3, 2), Hit(2, 0.8, 1), Hit(3, 0.1, 1)]
    assert relevance_scores(hits, {1, 2}) == [0.9, 0.3, 0.3, 0.1]


def test_uncalibrated_scores_pass_through_the_logistic_function() -> None:
    assert relevance_scores([Hit(0, 0.0)], ()) == [0.5]


@pytest.mark.parametrize("score", [-5.0, 0.0, 3.5])
def test_log_odds_invert_the_logistic_function(score: float) -> None:
    assert log_odds(sigmoid(score)) == pytest.approx(score)


def test_extreme_values_are_finite() -> None:
    assert math.isfinite(log_odds(0.0))
    assert math.isfinite(log_odds(1.0))
    assert sigmoid(-1e308) < 1e-300
    assert sigmoid(math.nan) == 0
