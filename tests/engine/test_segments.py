from __future__ import annotations

import numpy as np
import pytest

from askline.engine.numpy_ops import folded

TABLE = np.random.default_rng(0).standard_normal((1_000, 3)).astype(np.float32)


@pytest.mark.parametrize("ufunc", [np.add, np.maximum], ids=["sum", "maximum"])
@pytest.mark.parametrize(
    "lengths",
    [[1], [1, 1, 1], [3, 1, 2], [2, 128, 7, 1], [129, 4], [300, 5, 140, 1], [200], [128, 127]],
    ids=str,
)
def test_each_text_is_folded_by_itself(ufunc: np.ufunc, lengths: list[int]) -> None:
    sizes = np.array(lengths)
    starts = np.cumsum(sizes) - sizes
    words = np.random.default_rng(1).integers(0, len(TABLE), sizes.sum())
    plain = folded(ufunc, TABLE, starts, sizes)
    named = folded(ufunc, TABLE, starts, sizes, words=words)
    for text, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        rows = slice(start, start + size)
        np.testing.assert_allclose(plain[text], ufunc.reduce(TABLE[rows], axis=0), atol=1e-4)
        np.testing.assert_allclose(named[text], ufunc.reduce(TABLE[words[rows]], axis=0), atol=1e-4)


def test_rows_between_texts_are_passed_over() -> None:
    found = folded(np.maximum, TABLE, np.array([5, 20]), np.array([2, 4]))
    np.testing.assert_array_equal(found[0], TABLE[5:7].max(axis=0))
    np.testing.assert_array_equal(found[1], TABLE[20:24].max(axis=0))
