from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError
from askline.evaluation.calibration import (
    Abstention,
    IsotonicRegression,
    PlattScaling,
    auroc,
    choose_threshold,
    expected_calibration_error,
    reliability_bins,
)

pairs = st.lists(
    st.tuples(st.integers(-50, 50).map(lambda n: n / 10), st.booleans()), min_size=2, max_size=40
).filter(lambda rows: len({label for _, label in rows}) == 2)


def drawn(scale: float, shift: float, count: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose labels are true with probability sigmoid(scale * score + shift)."""
    random = np.random.default_rng(7)
    scores = random.normal(size=count) * 3
    probability = 1 / (1 + np.exp(-(scale * scores + shift)))
    return scores, random.random(count) < probability


def test_platt_scaling_recovers_scale_and_shift() -> None:
    fitted = PlattScaling.fit(*drawn(0.5, -1.0))
    assert fitted.scale == pytest.approx(0.5, abs=0.03)
    assert fitted.shift == pytest.approx(-1.0, abs=0.08)


def test_platt_scaling_stays_finite_for_separable_labels() -> None:
    fitted = PlattScaling.fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert np.isfinite([fitted.scale, fitted.shift]).all()
    assert fitted([3.0])[0] > 0.5 > fitted([-3.0])[0]


def test_platt_scaling_of_huge_scores_gives_no_warning() -> None:
    assert PlattScaling()([-1e6, 0.0, 1e6]).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("kind", [PlattScaling, IsotonicRegression], ids=["platt", "isotonic"])
def test_calibration_lowers_the_calibration_error(
    kind: type[PlattScaling] | type[IsotonicRegression],
) -> None:
    scores, labels = drawn(0.3, -2.0)
    fitted = kind.fit(scores[::2], labels[::2])
    raw = expected_calibration_error(PlattScaling()(scores[1::2]), labels[1::2])
    assert expected_calibration_error(fitted(scores[1::2]), labels[1::2]) < 0.03 < raw


def test_isotonic_regression_pools_adjacent_violators() -> None:
    fitted = IsotonicRegression.fit([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1])
    assert fitted.probabilities.tolist() == [0.0, 0.5, 0.5, 1.0]
    assert fitted([0.0, 1.5, 9.0]).tolist() == [0.0, 0.25, 1.0]


@pytest.mark.slow
@given(pairs)
def test_isotonic_regression_is_non_decreasing_and_keeps_the_mean(
    rows: list[tuple[float, bool]],
) -> None:
    scores, labels = zip(*rows, strict=True)
    fitted = IsotonicRegression.fit(scores, labels)
    assert (np.diff(fitted.probabilities) >= 0).all()
    assert fitted(scores).mean() == pytest.approx(np.mean(labels))


@pytest.mark.slow
@given(pairs)
def test_auroc_equals_the_share_of_ordered_pairs(rows: list[tuple[float, bool]]) -> None:
    high = [score for score, label in rows if label]
    low = [score for score, label in rows if not label]
    wins = sum((a > b) + 0.5 * (a == b) for a in high for b in low)
    scores, labels = zip(*rows, strict=True)
    assert auroc(scores, labels) == pytest.approx(wins / (len(high) * len(low)))


def test_calibration_error_of_a_small_example() -> None:
    # Bin 1 says 0.1 and 0.3 and none came true; bin 2 says 0.8 and it did: (0.4 + 0.2) / 3.
    value = expected_calibration_error([0.1, 0.3, 0.8], [0, 0, 1], bins=2)
    assert value == pytest.approx(0.2)


def test_calibration_error_of_correct_certainty_is_zero() -> None:
    assert expected_calibration_error([0.0, 1.0], [False, True]) == 0.0


def test_chosen_threshold_of_a_small_example() -> None:
    found = choose_threshold([0.1, 0.2, 0.3, 0.9], [False, True, False, True])
    assert (found.threshold, found.recall) == (0.9, 1.0)
    assert found.precision == pytest.approx(2 / 3)
    assert found.f1 == pytest.approx(0.8)


def test_given_threshold_of_a_small_example() -> None:
    scores, answerable = [0.1, 0.2, 0.3, 0.9], [False, True, False, True]
    found = Abstention.at(0.3, scores, answerable)  # silent about the first two
    assert (found.threshold, found.precision, found.recall, found.f1) == (0.3, 0.5, 0.5, 0.5)
    never = Abstention.at(0.0, scores, answerable)
    assert (never.precision, never.recall, never.f1) == (0.0, 0.0, 0.0)


@given(pairs)
def test_no_other_threshold_has_a_higher_f1(rows: list[tuple[float, bool]]) -> None:
    scores, labels = (np.array(column) for column in zip(*rows, strict=True))
    found = choose_threshold(scores, labels)

    def f1(threshold: float) -> float:
        silent = scores < threshold
        return float(2 * (silent & ~labels).sum() / (silent.sum() + (~labels).sum()))

    assert f1(found.threshold) == pytest.approx(found.f1)
    assert found.f1 == pytest.approx(max(f1(score + 0.01) for score in scores))


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0], [1, 0], "one label per score"),
        ([1.0, 2.0], [1, 1], "positive and negative labels"),
        ([1.0, np.nan], [1, 0], "finite"),
    ],
    ids=["lengths", "one kind", "not a number"],
)
def test_invalid_scores_and_labels_are_refused(
    scores: list[float], labels: list[int], message: str
) -> None:
    for use in (PlattScaling.fit, IsotonicRegression.fit, auroc, choose_threshold):
        with pytest.raises(InputError, match=message):
            use(scores, labels)


@pytest.mark.parametrize(
    ("probabilities", "bins", "message"),
    [([1.5, 0.1], 15, "from 0 to 1"), ([0.5], 15, "as many"), ([0.5, 0.1], 0, "`bins` must be")],
    ids=["range", "lengths", "bins"],
)
def test_calibration_error_refuses_invalid_input(
    probabilities: list[float], bins: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        expected_calibration_error(probabilities, [True, False], bins=bins)


def test_labels_and_scores_in_the_wrong_order_are_refused() -> None:
    for measure in (expected_calibration_error, auroc):
        with pytest.raises(InputError, match=r"Labels must be 0 or 1\. They come after"):
            measure([1, 0, 1], [0.9, 0.2, 0.7])


def test_a_reliability_bin_has_the_mean_probability_and_the_frequency() -> None:
    found = reliability_bins([0.0, 0.5, 0.3, 0.9, 0.9], [0, 1, 0, 1, 0], bins=2)
    assert [own.count for own in found] == [3, 2]  # the bound 0.5 is in the first bin
    assert [own.probability for own in found] == [pytest.approx(0.8 / 3), pytest.approx(0.9)]
    assert [own.frequency for own in found] == [pytest.approx(1 / 3), 0.5]
    assert [own.count for own in reliability_bins([0.05, 0.95], [0, 1], bins=10)] == [1, 1]
