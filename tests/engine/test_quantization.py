from __future__ import annotations

import numpy as np
import pytest

from askline.engine.quantization import InputSteps, fit_inputs, quantise_rows, round_rows

RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.standard_normal((12, 40)).astype(np.float32)
# Channels that go together, as an encoder's do, and one that is far larger than the rest.
INPUTS = (RANDOM.standard_normal((300, 10)) @ RANDOM.standard_normal((10, 40))).astype(np.float32)
LARGE = INPUTS.copy()
LARGE[:, 3] *= 40


def _error(
    inputs: np.ndarray[tuple[int, ...], np.dtype[np.float32]], whole: object, scale: object
) -> float:
    rounded = np.asarray(whole) * np.asarray(scale)[:, None]
    return float(np.square(inputs @ rounded.T - inputs @ WEIGHT.T).mean())


def test_rows_are_rounded_to_the_nearest_step() -> None:
    whole, scale = quantise_rows(WEIGHT)
    assert whole.dtype == np.int8
    assert np.abs(whole).max(axis=1).tolist() == [127] * 12
    assert np.abs(whole * scale[:, None] - WEIGHT).max() <= scale.max() / 2 + 1e-6


def test_a_row_of_zeros_stays_zero() -> None:
    whole, scale = quantise_rows(np.zeros((1, 4), np.float32))
    assert not whole.any()
    assert np.isfinite(scale).all()


def test_errors_are_made_up_for_on_the_inputs_that_come() -> None:
    plain = _error(INPUTS, *quantise_rows(WEIGHT, 64))
    assert _error(INPUTS, *round_rows(WEIGHT, INPUTS)) < plain / 2


def test_two_products_fit_sixteen_bits() -> None:
    whole, _ = round_rows(WEIGHT * 100, INPUTS)
    assert 2 * 255 * int(np.abs(whole.astype(int)).max()) <= 2**15 - 1


@pytest.mark.parametrize(
    "inputs", [INPUTS, LARGE, np.abs(INPUTS)], ids=["even", "large", "above 0"]
)
def test_inputs_come_back_nearly_the_same(
    inputs: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> None:
    steps = fit_inputs(inputs, [WEIGHT[:5], WEIGHT[5:]])
    wanted = inputs @ WEIGHT.T
    assert np.square(steps.rounded(inputs) @ WEIGHT.T - wanted).mean() < 1e-3 * wanted.var()
    assert 0 <= steps.zero <= 255


def test_a_large_channel_is_made_smaller() -> None:
    steps = fit_inputs(LARGE, [WEIGHT])
    assert steps.smooth is not None
    assert steps.smooth[3] < np.median(steps.smooth) / 4


def test_inputs_outside_the_range_are_clipped() -> None:
    steps = InputSteps(0.1, 100)
    found = steps.rounded(np.array([[-1000.0, 0.0, 1000.0]], np.float32))
    assert found == pytest.approx(np.array([[-10.0, 0.0, 15.5]]))
