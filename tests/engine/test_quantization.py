from __future__ import annotations

import numpy as np
import pytest

from askline.engine.quantization import (
    InputQuantization,
    fit_input_quantization,
    int4_shapes,
    pack_int4,
    quantize_rows,
    quantize_rows_gptq,
    unpack_int4,
)
from askline.errors import ModelError

RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.standard_normal((12, 40)).astype(np.float32)
# Correlated channels, as in an encoder, and one channel that is much larger.
INPUTS = (RANDOM.standard_normal((300, 10)) @ RANDOM.standard_normal((10, 40))).astype(np.float32)
LARGE = INPUTS.copy()
LARGE[:, 3] *= 40


def _error(
    inputs: np.ndarray[tuple[int, ...], np.dtype[np.float32]], whole: object, scale: object
) -> float:
    rounded = np.asarray(whole) * np.asarray(scale)[:, None]
    return float(np.square(inputs @ rounded.T - inputs @ WEIGHT.T).mean())


def test_rows_are_rounded_to_the_nearest_integer() -> None:
    whole, scale = quantize_rows(WEIGHT)
    assert whole.dtype == np.int8
    assert np.abs(whole).max(axis=1).tolist() == [127] * 12
    assert np.abs(whole * scale[:, None] - WEIGHT).max() <= scale.max() / 2 + 1e-6


def test_a_row_of_zeros_stays_zero() -> None:
    whole, scale = quantize_rows(np.zeros((1, 4), np.float32))
    assert not whole.any()
    assert np.isfinite(scale).all()


def test_gptq_reduces_the_error_on_the_inputs() -> None:
    plain = _error(INPUTS, *quantize_rows(WEIGHT, 64))
    assert _error(INPUTS, *quantize_rows_gptq(WEIGHT, INPUTS)) < plain / 2


def test_two_products_fit_into_16_bits() -> None:
    whole, _ = quantize_rows_gptq(WEIGHT * 100, INPUTS)
    assert 2 * 255 * int(np.abs(whole.astype(int)).max()) <= 2**15 - 1


@pytest.mark.parametrize(
    "inputs", [INPUTS, LARGE, np.abs(INPUTS)], ids=["even", "large", "above 0"]
)
def test_fake_quantized_inputs_are_close(
    inputs: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> None:
    steps = fit_input_quantization(inputs, [WEIGHT[:5], WEIGHT[5:]])
    wanted = inputs @ WEIGHT.T
    assert np.square(steps.fake_quantize(inputs) @ WEIGHT.T - wanted).mean() < 1e-3 * wanted.var()
    assert 0 <= steps.zero <= 255


def test_a_large_channel_is_smoothed() -> None:
    steps = fit_input_quantization(LARGE, [WEIGHT])
    assert steps.smooth is not None
    assert steps.smooth[3] < np.median(steps.smooth) / 4


def test_inputs_outside_the_range_are_clipped() -> None:
    steps = InputQuantization(0.1, 100)
    found = steps.fake_quantize(np.array([[-1000.0, 0.0, 1000.0]], np.float32))
    assert found == pytest.approx(np.array([[-10.0, 0.0, 15.5]]))


def test_unpacked_int4_is_within_half_a_step() -> None:
    table = np.random.default_rng(0).standard_normal((5, 96)).astype(np.float32)
    packed, steps = pack_int4(table)
    assert (packed.shape, steps.shape) == int4_shapes(5, 96) == ((5, 48), (5, 3))
    largest = np.abs(table).reshape(5, 3, 32).max(-1)
    error = np.abs(unpack_int4(packed, steps) - table).reshape(5, 3, 32).max(-1)
    assert (error <= largest / 7 * 0.51).all()


def test_packing_an_unpacked_table_is_lossless() -> None:
    table = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    once = unpack_int4(*pack_int4(table))
    assert np.array_equal(unpack_int4(*pack_int4(once)), once)


def test_rows_of_zeros_stay_zero() -> None:
    assert not unpack_int4(*pack_int4(np.zeros((2, 32), np.float32))).any()


def test_columns_must_be_a_multiple_of_the_group_size() -> None:
    with pytest.raises(ModelError, match="must have a multiple of 32 columns, got 40"):
        pack_int4(np.zeros((2, 40), np.float32))
