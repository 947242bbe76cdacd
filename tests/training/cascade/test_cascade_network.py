from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.errors import InputError, ModelError, UnknownNameError
from askline.training.cascade.cascade_network import (
    CascadeNetwork,
    CascadeShape,
    load_cascade,
    parse_depths,
    save_cascade,
)
from askline.training.packing import PackedBatch, PairTemplate, TokenTable, pack
from askline.training.transformer.pair_network import PairNetwork

TEXTS = ["who wrote emma ?", "jane austen wrote emma .", "paris is a city .", "where ?"]


@pytest.fixture
def batch(tokenizer: Any) -> PackedBatch:
    table = TokenTable.of(TEXTS, tokenizer)
    return pack(table, np.array([0, 0, 3]), np.array([1, 2, 2]), PairTemplate.of(tokenizer))


def test_states_are_those_of_the_library_at_every_layer(
    network: CascadeNetwork, batch: PackedBatch
) -> None:
    encoder: Any = network.encoder
    with torch.no_grad():
        expected = encoder(**batch.padded(), output_hidden_states=True).hidden_states
        for number, states in network.states(batch):
            own = expected[number][batch.owners, batch.positions]
            assert torch.allclose(states, own, atol=1e-5), number


def test_encoders_of_other_families_are_padded(
    network: CascadeNetwork, batch: PackedBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.no_grad():
        packed = network(batch)
        monkeypatch.setattr("askline.training.cascade.cascade_network.is_bert", lambda _: False)
        padded = network(batch)
    assert torch.allclose(packed.scores, padded.scores, atol=1e-5)
    assert torch.allclose(packed.ends, padded.ends, atol=1e-5)


def test_classifiers_start_as_that_of_the_cross_encoder(
    bert_folder: Path, batch: PackedBatch
) -> None:
    cross = PairNetwork.start(bert_folder).eval()
    network = CascadeNetwork.start(bert_folder, CascadeShape((2, 4))).eval()
    with torch.no_grad():
        assert torch.allclose(network(batch).scores[-1], cross(batch.padded()), atol=1e-5)
    first, last = (network.classifiers[depth].state_dict() for depth in ("2", "4"))
    assert all(torch.equal(first[name], last[name]) for name in first)


def test_mean_head_is_three_layers_over_the_mean(bert_folder: Path, batch: PackedBatch) -> None:
    network = CascadeNetwork.start(bert_folder, CascadeShape((4,), "mean")).eval()
    head: Any = network.classifiers["4"]
    with torch.no_grad():
        *_, (_, states) = network.states(batch)
        means = torch.stack([states[batch.owners == at].mean(0) for at in range(3)])
        for layer in head.layers:
            means = torch.tanh(layer(means))
        assert torch.allclose(network(batch).scores[0], head.out(means)[:, 0], atol=1e-5)


def test_a_mixed_cascade_starts_with_the_cross_encoder_s_own_classifier(
    bert_folder: Path, batch: PackedBatch
) -> None:
    mixed = CascadeNetwork.start(bert_folder, CascadeShape((1, 2, 4), "mixed")).eval()
    alone = CascadeNetwork.start(bert_folder, CascadeShape((4,), "first")).eval()
    kinds = [type(mixed.classifiers[depth]).__name__ for depth in ("1", "2", "4")]
    assert kinds == ["MeanClassifier", "MeanClassifier", "FirstTokenClassifier"]
    with torch.no_grad():
        found, wanted = mixed(batch), alone(batch)
    assert torch.equal(found.scores[-1], wanted.scores[-1])
    assert torch.equal(found.first, wanted.first)


def test_deepest_stops_early(network: CascadeNetwork, batch: PackedBatch) -> None:
    with torch.no_grad():
        whole, part = network(batch), network(batch, deepest=2)
    assert part.scores.shape == (2, 3)
    assert part.ends is None
    assert torch.equal(part.scores, whole.scores[:2])


def test_a_shallower_cascade_leaves_layers_out(bert_folder: Path) -> None:
    network = CascadeNetwork.start(bert_folder, CascadeShape((1, 2), reader=False))
    config: Any = network.encoder.config
    assert (config.num_hidden_layers, network.reader) == (2, None)


@pytest.mark.parametrize("depths", [(), (0, 2), (2, 2), (4, 2)], ids=str)
def test_depths_must_rise(depths: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="must be ascending"):
        CascadeShape(depths)


def test_wrong_shapes_are_refused(bert_folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="middle"):
        CascadeShape((2,), "middle")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at most 4, the number of layers"):
        CascadeNetwork.start(bert_folder, CascadeShape((2, 6)))
    with pytest.raises(InputError, match="such as 4,6,8, got '4;6'"):
        parse_depths("4;6")
    assert parse_depths("4,6") == (4, 6)


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
def test_a_saved_cascade_scores_the_same(
    tmp_path: Path, bert_folder: Path, tokenizer: Any, batch: PackedBatch, head: Any
) -> None:
    network = CascadeNetwork.start(bert_folder, CascadeShape((1, 3), head)).eval()
    folder = save_cascade(network, tokenizer, tmp_path / "cascade")
    again, _ = load_cascade(folder)
    assert again.shape == network.shape
    with torch.no_grad():
        before, after = network(batch), again(batch)
    assert torch.equal(before.scores, after.scores)
    assert torch.equal(before.ends, after.ends)


def test_damaged_folders_are_refused(
    tmp_path: Path, network: CascadeNetwork, tokenizer: Any, bert_folder: Path
) -> None:
    with pytest.raises(ModelError, match="No cascade.safetensors"):
        load_cascade(bert_folder)
    folder = save_cascade(network, tokenizer, tmp_path / "cascade")
    config = folder / "config.json"
    text = config.read_text()
    config.write_text(text.replace('"reader": true', '"reader": false'))
    with pytest.raises(ModelError, match="reader.weight"):
        load_cascade(folder)
    config.write_text(text.replace("askline_cascade", "another"))
    with pytest.raises(ModelError, match="no valid 'askline_cascade'"):
        load_cascade(folder)
    config.write_text(text)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-9])
    with pytest.raises(ModelError, match="Check that the folder is complete"):
        load_cascade(folder)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "cascade.safetensors").write_bytes(b"x")
    with pytest.raises(ModelError, match="damaged"):
        load_cascade(folder)
