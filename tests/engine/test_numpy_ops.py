from __future__ import annotations

import numpy as np
import pytest

from askline.engine.numpy_ops import matmul, segment_reduce, weighted_sum


@pytest.mark.parametrize("outputs", [(), (1,), (3,), (120,), (4000,)], ids=str)
@pytest.mark.parametrize("count", [0, 1, 7, 16, 2_500])
def test_matmul_is_the_matrix_product(count: int, outputs: tuple[int, ...]) -> None:
    random = np.random.default_rng(count)
    rows = random.standard_normal((count, 128)).astype(np.float32)
    weights = random.standard_normal((128, *outputs)).astype(np.float32)
    found = matmul(rows, weights)
    assert found.shape == (count, *outputs)
    np.testing.assert_allclose(found, rows @ weights, atol=1e-4)


def test_matmul_writes_into_out() -> None:
    rows, weights = np.ones((40, 128), np.float32), np.ones((128, 120), np.float32)
    table = np.zeros((41, 120), np.float32)
    found = matmul(rows, weights, out=table[1:])
    assert found.base is table
    assert not table[0].any()
    assert (table[1:] == 128).all()


def test_matmul_takes_rows_that_are_not_contiguous() -> None:
    wide = np.arange(60 * 200, dtype=np.float32).reshape(60, 200) / 1e4
    weights = np.ones((64, 5), np.float32)
    np.testing.assert_allclose(matmul(wide[:, :64], weights), wide[:, :64] @ weights, rtol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 64, 1_000])
def test_weighted_sum_is_the_vector_product(count: int) -> None:
    random = np.random.default_rng(count)
    rows = random.standard_normal((count, 128)).astype(np.float32)
    weights = random.standard_normal(count).astype(np.float32)
    np.testing.assert_allclose(weighted_sum(weights, rows), weights @ rows, atol=1e-4)


TABLE = np.random.default_rng(0).standard_normal((1_000, 3)).astype(np.float32)


@pytest.mark.parametrize("ufunc", [np.add, np.maximum], ids=["sum", "maximum"])
@pytest.mark.parametrize(
    "lengths",
    [[1], [1, 1, 1], [3, 1, 2], [2, 128, 7, 1], [129, 4], [300, 5, 140, 1], [200], [128, 127]],
    ids=str,
)
def test_each_segment_is_reduced_by_itself(ufunc: np.ufunc, lengths: list[int]) -> None:
    sizes = np.array(lengths)
    starts = np.cumsum(sizes) - sizes
    words = np.random.default_rng(1).integers(0, len(TABLE), sizes.sum())
    plain = segment_reduce(ufunc, TABLE, starts, sizes)
    named = segment_reduce(ufunc, TABLE, starts, sizes, words=words)
    for text, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        rows = slice(start, start + size)
        np.testing.assert_allclose(plain[text], ufunc.reduce(TABLE[rows], axis=0), atol=1e-4)
        np.testing.assert_allclose(named[text], ufunc.reduce(TABLE[words[rows]], axis=0), atol=1e-4)


def test_rows_between_segments_are_ignored() -> None:
    found = segment_reduce(np.maximum, TABLE, np.array([5, 20]), np.array([2, 4]))
    np.testing.assert_array_equal(found[0], TABLE[5:7].max(axis=0))
    np.testing.assert_array_equal(found[1], TABLE[20:24].max(axis=0))
