from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askline.errors import InputError, UnknownNameError
from askline.evaluation import (
    Interval,
    bootstrap_interval,
    compare,
    evaluate,
    randomization_test,
    t_test,
)
from askline.types import QuestionSet

from .conftest import Given, Reversed, make_question

fractions = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
pairs = st.lists(st.tuples(fractions, fractions), min_size=1, max_size=30)


@pytest.mark.slow
@given(st.lists(fractions, min_size=1, max_size=30), st.integers(0, 100))
@settings(deadline=None)
def test_bootstrap_interval_contains_the_mean_and_is_within_the_values(
    values: list[float], seed: int
) -> None:
    interval = bootstrap_interval(values, samples=2000, confidence=0.99, seed=seed)
    rounding = 1e-9
    assert interval.low - rounding <= np.mean(values) <= interval.high + rounding
    assert min(values) - rounding <= interval.low
    assert interval.high <= max(values) + rounding


def test_bootstrap_interval_has_its_nominal_coverage() -> None:
    rng = np.random.default_rng(7)
    draws = rng.normal(0.5, 0.2, size=(300, 80))
    intervals = [bootstrap_interval(draw, samples=500, confidence=0.9) for draw in draws]
    covered = np.mean([interval.low <= 0.5 <= interval.high for interval in intervals])
    assert 0.84 < covered < 0.95


def test_bootstrap_interval_agrees_with_the_normal_approximation() -> None:
    values = np.random.default_rng(3).random(2000)
    half = 1.959964 * values.std(ddof=1) / np.sqrt(len(values))
    interval = bootstrap_interval(values)
    assert interval.low == pytest.approx(values.mean() - half, abs=half / 20)
    assert interval.high == pytest.approx(values.mean() + half, abs=half / 20)


def test_bootstrap_interval_depends_on_the_seed_only() -> None:
    values = np.random.default_rng(3).random(50)
    assert bootstrap_interval(values, seed=1) == bootstrap_interval(values, seed=1)
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)


def test_blocks_add_up_to_the_number_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(3).random((2, 50))
    whole = randomization_test(a, b, samples=1001)
    monkeypatch.setattr("askline.evaluation.significance._MAX_BLOCK_VALUES", 400)
    blocks = randomization_test(a, b, samples=1001)
    assert (whole * 1002) == pytest.approx(round(whole * 1002))
    assert (blocks * 1002) == pytest.approx(round(blocks * 1002))
    assert blocks == pytest.approx(whole, abs=0.06)


@pytest.mark.slow
@given(pairs)
@settings(deadline=None)
def test_randomization_test_is_symmetric_and_in_range(
    values: list[tuple[float, float]],
) -> None:
    a, b = np.array(values).T
    p = randomization_test(a, b, samples=200)
    assert 1 / 201 <= p <= 1
    assert randomization_test(b, a, samples=200) == p


@pytest.mark.parametrize(
    "differences",
    [[1.0, 1.0, 1.0, -1.0], [0.3, 0.1, 0.2], [0.1, 0.1, 0.1, 0.0, -0.3], [0.5]],
    ids=["three of four", "sums that round", "even", "one question"],
)
def test_randomization_test_approximates_the_exact_p_value(differences: list[float]) -> None:
    signs = itertools.product([-1, 1], repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(row, differences, strict=True))) for row in signs]
    exact = np.mean([value >= abs(sum(differences)) - 1e-12 for value in sums])
    p = randomization_test(differences, [0.0] * len(differences), samples=20_000)
    assert p == pytest.approx(exact, abs=0.015)


def test_randomization_test_detects_a_clear_difference() -> None:
    rng = np.random.default_rng(5)
    a = rng.random(200)
    assert randomization_test(a, a - 0.1 + 0.05 * rng.random(200)) == 1 / 10_001
    assert randomization_test(a, rng.permutation(a)) > 0.05


@pytest.mark.slow
@given(pairs)
@settings(deadline=None)
def test_t_test_equals_scipy(values: list[tuple[float, float]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    a, b = np.array(values).T
    if len(values) < 2 or np.ptp(a - b) < 1e-6:
        return  # no spread: scipy warns, see the next test
    assert t_test(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [([0.5], [0.1], 1.0), ([0.5, 0.2], [0.5, 0.2], 1.0), ([1, 1, 1], [0, 0, 0], 0.0)],
    ids=["one question", "identical", "no spread"],
)
def test_t_test_without_variance(a: list[float], b: list[float], p: float) -> None:
    assert t_test(a, b) == p


@pytest.fixture
def mixed() -> QuestionSet:
    labels = [[1, 0], [1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    questions = (make_question(f"q{number}", row) for number, row in enumerate(labels))
    return QuestionSet("mixed", tuple(questions))


def test_compare_a_small_example(mixed: QuestionSet) -> None:
    comparison = compare(
        evaluate(Given(), mixed, measures="P@1"), evaluate(Reversed(), mixed, measures="P@1"), "P@1"
    )
    assert (comparison.a, comparison.b, comparison.question_set) == ("given", "reversed", "mixed")
    assert (comparison.percent_a, comparison.percent_b) == (60.0, 20.0)
    assert comparison.difference == pytest.approx(40.0)
    assert (comparison.wins, comparison.ties, comparison.losses) == (3, 1, 1)
    assert comparison.interval.low < 40.0 < comparison.interval.high
    assert -100 <= comparison.interval.low <= comparison.interval.high <= 100


def test_swapping_rankers_flips_the_sign_and_keeps_p(mixed: QuestionSet) -> None:
    a, b = evaluate(Given(), mixed), evaluate(Reversed(), mixed)
    there, back = compare(a, b), compare(b, a)
    assert there.difference == -back.difference
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert (there.p_randomization, there.p_t) == (back.p_randomization, back.p_t)
    assert there.interval.low == pytest.approx(-back.interval.high)
    assert there.interval.high == pytest.approx(-back.interval.low)


def test_identical_runs_have_no_significant_difference(mixed: QuestionSet) -> None:
    comparison = compare(evaluate(Given(), mixed), evaluate(Given(), mixed))
    assert comparison.measure == "MAP"
    assert (comparison.difference, comparison.interval) == (0.0, Interval(0.0, 0.0))
    assert (comparison.p_randomization, comparison.p_t) == (1.0, 1.0)
    assert (comparison.wins, comparison.ties, comparison.losses) == (0, 5, 0)


def test_comparison_as_dict_is_json_serializable(mixed: QuestionSet) -> None:
    record = compare(evaluate(Given(), mixed), evaluate(Reversed(), mixed)).as_dict()
    assert json.loads(json.dumps(record)) == record
    assert set(record) > {"difference", "interval", "p_randomization", "p_t"}


def test_compare_refuses_different_questions(mixed: QuestionSet, tiny: QuestionSet) -> None:
    renamed = QuestionSet("other", mixed.questions)
    fewer = QuestionSet("mixed", mixed.questions[:4])
    for other in (tiny, renamed, fewer):
        with pytest.raises(InputError, match=r"same questions .*got 'mixed' \(5 questions\) and"):
            compare(evaluate(Given(), mixed), evaluate(Given(), other))


def test_compare_lists_the_evaluated_measures(mixed: QuestionSet) -> None:
    a, b = evaluate(Given(), mixed), evaluate(Given(), mixed, measures="MRR,R@5")
    with pytest.raises(UnknownNameError, match="No evaluated measure 'MAP'. Known: MRR, R@5"):
        compare(a, b)


@pytest.mark.parametrize("values", [[], [float("nan")], [[1.0, 2.0]]], ids=["empty", "nan", "2-d"])
def test_intervals_and_tests_refuse_invalid_values(values: list[float]) -> None:
    with pytest.raises(InputError, match="Expected a list of finite values"):
        bootstrap_interval(values)
    with pytest.raises(InputError, match="Expected a list of finite values"):
        randomization_test(values, values)


def test_paired_tests_refuse_lists_of_different_length() -> None:
    with pytest.raises(InputError, match="two lists of equal length, got 2 and 1"):
        t_test([1.0, 2.0], [1.0])


def test_bootstrap_interval_refuses_invalid_settings() -> None:
    with pytest.raises(InputError, match="`confidence` must be between 0 and 1, got 95"):
        bootstrap_interval([1.0], confidence=95)
    with pytest.raises(InputError, match="`samples` must be at least 1, got 0"):
        bootstrap_interval([1.0], samples=0)
