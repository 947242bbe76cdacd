from __future__ import annotations

import numpy as np
import pytest

from askline.engine.recurrent_layer import apply_list_layer, list_layer_shapes
from askline.models.light_config import ListLayerKind


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
