from __future__ import annotations

import numpy as np
import pytest

from askline.engine.quantization import from_nibbles, nibble_shapes, to_nibbles
from askline.errors import ModelError


def test_a_table_comes_back_within_half_a_step() -> None:
    table = np.random.default_rng(0).standard_normal((5, 96)).astype(np.float32)
    packed, steps = to_nibbles(table)
    assert (packed.shape, steps.shape) == nibble_shapes(5, 96) == ((5, 48), (5, 3))
    largest = np.abs(table).reshape(5, 3, 32).max(-1)
    error = np.abs(from_nibbles(packed, steps) - table).reshape(5, 3, 32).max(-1)
    assert (error <= largest / 7 * 0.51).all()


def test_what_came_back_goes_in_again_without_a_loss() -> None:
    table = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    once = from_nibbles(*to_nibbles(table))
    assert np.array_equal(from_nibbles(*to_nibbles(once)), once)


def test_rows_of_zeros_stay_zero() -> None:
    assert not from_nibbles(*to_nibbles(np.zeros((2, 32), np.float32))).any()


def test_a_table_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ModelError, match="must have n × 32 columns, got 40"):
        to_nibbles(np.zeros((2, 40), np.float32))
