from __future__ import annotations

import numpy as np
import pytest

from askline.engine.convolution import pooled_convolution, pooled_convolutions


def test_width_one_by_hand() -> None:
    words = np.array([[[1, 0], [0, 1], [9, 9]]], np.float32)
    weight = np.array([[[2], [3]], [[-1], [-1]]], np.float32)  # (filters, inputs, width)
    found = pooled_convolution(words, np.array([2]), weight, np.array([0, 10], np.float32))
    assert found.tolist() == [[3, 9]]  # the third word lies beyond the end


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_windows_are_those_of_a_padded_convolution(width: int) -> None:
    random = np.random.default_rng(width)
    lengths = np.array([1, 6, 3])
    words = random.standard_normal((3, 6, 4)).astype(np.float32)
    words[np.arange(6) >= lengths[:, None]] = 0
    weight = random.standard_normal((5, 4, width)).astype(np.float32)
    found = pooled_convolution(words, lengths, weight, np.zeros(5, np.float32))
    for text, length in enumerate(lengths):
        line = np.concatenate([np.zeros((width, 4)), words[text], np.zeros((width, 4))])
        starts = width - width // 2 + np.arange(length)
        values = [np.einsum("kd,fdk->f", line[start : start + width], weight) for start in starts]
        np.testing.assert_allclose(found[text], np.max(values, axis=0), atol=1e-5)


def test_several_widths_are_each_as_alone() -> None:
    random = np.random.default_rng(0)
    lengths = np.array([2, 700, 1, *[5] * 400])  # more windows than are computed at once
    inside = np.arange(700) < lengths[:, None]
    words = random.standard_normal((len(lengths), 700, 3)).astype(np.float32) * inside[..., None]
    filters = [
        (
            random.standard_normal((4, 3, width)).astype(np.float32),
            np.array([1, 2, 3, width], np.float32),
        )
        for width in (1, 4, 2)
    ]
    alone = [pooled_convolution(words, lengths, *one) for one in filters]
    together = pooled_convolutions(words, lengths, filters)
    np.testing.assert_allclose(together, np.concatenate(alone, axis=1), atol=1e-5)
