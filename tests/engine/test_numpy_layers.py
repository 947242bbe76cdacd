from __future__ import annotations

import numpy as np
import pytest

from askline.engine.numpy_layers import (
    ConvolutionLookup,
    apply_list_layer,
    list_layer_shapes,
    pooled_convolution,
    pooled_convolutions,
)
from askline.engine.numpy_ops import FloatArray
from askline.models.light_config import ListLayerKind


def test_width_one_by_hand() -> None:
    words = np.array([[[1, 0], [0, 1], [9, 9]]], np.float32)
    weight = np.array([[[2], [3]], [[-1], [-1]]], np.float32)  # (filters, inputs, width)
    found = pooled_convolution(words, np.array([2]), weight, np.array([0, 10], np.float32))
    assert found.tolist() == [[3, 9]]  # the third word is beyond the end


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


def test_several_widths_give_the_same_as_each_one_alone() -> None:
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


DIMENSIONS, CHANNELS, FILTERS = 4, 2, 3


def _naive(words: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    """One text, by the definition of a convolution: (words, inputs) → (filters,)."""
    count, width = len(words), weight.shape[2]
    padded = np.zeros((count + width - 1, words.shape[1]))
    padded[width // 2 : width // 2 + count] = words
    windows = [np.einsum("ti,fit->f", padded[at : at + width], weight) for at in range(count)]
    return np.asarray(np.max(windows, axis=0) + bias)


@pytest.fixture(params=[1, 3, 5], ids=lambda width: f"width {width}")
def lookup(
    request: pytest.FixtureRequest,
) -> tuple[ConvolutionLookup, FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, DIMENSIONS)).astype(np.float32)
    table[0] = 0
    weight = rng.normal(size=(FILTERS, DIMENSIONS + CHANNELS, request.param)).astype(np.float32)
    bias = rng.normal(size=FILTERS).astype(np.float32)
    return ConvolutionLookup.of(table, weight, bias), table, weight, bias


def test_pooled_is_a_convolution_and_a_maximum(
    lookup: tuple[ConvolutionLookup, FloatArray, FloatArray, FloatArray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, table, weight, bias = lookup
    rng = np.random.default_rng(1)
    monkeypatch.setattr("askline.engine.numpy_layers._VALUES_AT_ONCE", 2_048 * FILTERS)
    # Longer than a block, a block of many, and the shortest.
    lengths = np.array([1, 5, 2_500, 2, 7, 1, *[30] * 200])
    words = rng.integers(1, 50, lengths.sum())
    channels = rng.normal(size=(len(words), CHANNELS)).astype(np.float32)
    pooled = own.pooled(words, channels, lengths)
    ends = np.cumsum(lengths)
    for text, (end, length) in enumerate(zip(ends, lengths, strict=True)):
        part = slice(end - length, end)
        inputs = np.concatenate([table[words[part]], channels[part]], axis=1)
        assert pooled[text] == pytest.approx(_naive(inputs, weight, bias), abs=1e-4)


def test_pooled_per_pair_is_the_same_for_each_pair(
    lookup: tuple[ConvolutionLookup, FloatArray, FloatArray, FloatArray],
) -> None:
    own, table, weight, bias = lookup
    rng = np.random.default_rng(2)
    words = rng.integers(1, 50, 6)
    channels = rng.normal(size=(1_000, 6, CHANNELS)).astype(np.float32)
    pooled = own.pooled_per_pair(words, channels)
    for pair in (0, 1, 499, 999):
        inputs = np.concatenate([table[words], channels[pair]], axis=1)
        assert pooled[pair] == pytest.approx(_naive(inputs, weight, bias), abs=1e-4)


def test_a_text_does_not_depend_on_the_other_texts(
    lookup: tuple[ConvolutionLookup, FloatArray, FloatArray, FloatArray],
) -> None:
    own = lookup[0]
    rng = np.random.default_rng(3)
    words, lengths = rng.integers(1, 50, 60), np.array([20, 30, 10])
    channels = rng.normal(size=(60, CHANNELS)).astype(np.float32)
    together = own.pooled(words, channels, lengths)
    alone = own.pooled(words[20:50], channels[20:50], lengths[1:2])
    assert together[1] == pytest.approx(alone[0], abs=1e-6)


def test_channels_that_depend_on_the_word_are_part_of_the_lookup(
    lookup: tuple[ConvolutionLookup, FloatArray, FloatArray, FloatArray],
) -> None:
    _, table, weight, bias = lookup
    rng = np.random.default_rng(4)
    beside = rng.normal(size=(49, CHANNELS)).astype(np.float32)
    words, lengths = rng.integers(0, 49, 12), np.array([4, 1, 7])
    own = ConvolutionLookup.of_words(table[1:], beside, weight, bias)
    pooled = own.pooled(words + 1, np.zeros((12, 0), np.float32), lengths)
    inputs = np.concatenate([table[1:], beside], axis=1)[words]
    assert pooled[0] == pytest.approx(_naive(inputs[:4], weight, bias), abs=1e-4)
    assert pooled[2] == pytest.approx(_naive(inputs[5:], weight, bias), abs=1e-4)


def _drawn(kind: ListLayerKind, inputs: int, hidden: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shapes = list_layer_shapes(kind, inputs, hidden)
    return {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def test_without_a_layer_pairs_are_returned() -> None:
    pairs = np.ones((3, 2), np.float32)
    assert apply_list_layer("none", {}, pairs) is pairs


def test_rnn_by_hand() -> None:
    one = np.ones((1, 1), np.float32)
    tensors = {
        "list.weight_ih_l0": 2 * one,
        "list.weight_hh_l0": -one,
        "list.bias_ih_l0": np.array([0.5], np.float32),
        "list.bias_hh_l0": np.array([0.25], np.float32),
    }
    first = np.tanh(2 * 1 + 0.75)
    second = np.tanh(2 * -1 + 0.75 - first)
    found = apply_list_layer("rnn", tensors, np.array([[1], [-1]], np.float32))
    np.testing.assert_allclose(found[:, 0], [first, second], atol=1e-6)


@pytest.mark.parametrize("kind", ["rnn", "birnn", "lstm", "bilstm"])
def test_layers_give_torchs_outputs(kind: ListLayerKind) -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle here")
    both = kind.startswith("bi")
    cell = torch.nn.LSTM if kind.endswith("lstm") else torch.nn.RNN
    layer = cell(5, 3 if both else 6, batch_first=True, bidirectional=both)
    tensors = _drawn(kind, 5, 6)
    layer.load_state_dict(
        {name.removeprefix("list."): torch.from_numpy(value) for name, value in tensors.items()}
    )
    pairs = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)
    with torch.inference_mode():
        expected = layer(torch.from_numpy(pairs)[None])[0][0].numpy()
    np.testing.assert_allclose(apply_list_layer(kind, tensors, pairs), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["birnn", "bilstm"])
def test_both_directions_read_the_whole_list(kind: ListLayerKind) -> None:
    pairs = np.random.default_rng(2).standard_normal((4, 5)).astype(np.float32)
    before = apply_list_layer(kind, _drawn(kind, 5, 6), pairs)
    pairs[-1] += 1
    after = apply_list_layer(kind, _drawn(kind, 5, 6), pairs)
    assert np.array_equal(before[0, :3], after[0, :3])  # forward: depends on earlier pairs only
    assert not np.array_equal(before[0, 3:], after[0, 3:])


def test_large_inputs_do_not_overflow() -> None:
    pairs = np.full((2, 5), 1e4, np.float32)
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(apply_list_layer("lstm", _drawn("lstm", 5, 6), pairs)).all()
