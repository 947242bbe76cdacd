from __future__ import annotations

import numpy as np
import pytest

from askline.engine.numpy_ops import product, weighted_sum


@pytest.mark.parametrize("outputs", [(), (1,), (3,), (120,), (4000,)], ids=str)
@pytest.mark.parametrize("count", [0, 1, 7, 16, 2_500])
def test_product_is_the_matrix_product(count: int, outputs: tuple[int, ...]) -> None:
    random = np.random.default_rng(count)
    rows = random.standard_normal((count, 128)).astype(np.float32)
    weights = random.standard_normal((128, *outputs)).astype(np.float32)
    found = product(rows, weights)
    assert found.shape == (count, *outputs)
    np.testing.assert_allclose(found, rows @ weights, atol=1e-4)


def test_product_writes_where_it_is_told() -> None:
    rows, weights = np.ones((40, 128), np.float32), np.ones((128, 120), np.float32)
    table = np.zeros((41, 120), np.float32)
    found = product(rows, weights, out=table[1:])
    assert found.base is table
    assert not table[0].any()
    assert (table[1:] == 128).all()


def test_product_takes_rows_that_do_not_lie_side_by_side() -> None:
    wide = np.arange(60 * 200, dtype=np.float32).reshape(60, 200) / 1e4
    weights = np.ones((64, 5), np.float32)
    np.testing.assert_allclose(product(wide[:, :64], weights), wide[:, :64] @ weights, rtol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 64, 1_000])
def test_weighted_sum_is_the_vector_product(count: int) -> None:
    random = np.random.default_rng(count)
    rows = random.standard_normal((count, 128)).astype(np.float32)
    weights = random.standard_normal(count).astype(np.float32)
    np.testing.assert_allclose(weighted_sum(weights, rows), weights @ rows, atol=1e-4)
