from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from askline.errors import InputError, ModelError, UnknownNameError
from askline.training.transformer.pair_network import (
    FirstTokenHead,
    MeanHead,
    PairNetwork,
    pair_scores,
)
from askline.training.transformer.pair_sets import encode_pairs
from askline.types import QuestionSet


@pytest.mark.parametrize("head", ["plain", "first-token", "mean"])
@pytest.mark.parametrize("depth", [None, 2])
def test_network_gives_one_score_a_pair(
    bert_folder: Path, tokenizer: Any, questions: QuestionSet, head: Any, depth: int | None
) -> None:
    network = PairNetwork.start(bert_folder, head=head, depth=depth).eval()
    pairs = encode_pairs(questions, tokenizer)
    scores = network(pairs.collate(pairs.rows([0, 1]), "cpu"))
    assert scores.shape == (5,)
    assert network.depth == (depth or 4)
    assert network.encoder.config.num_hidden_layers == network.depth  # type: ignore[union-attr]


def test_scores_do_not_depend_on_the_batches(
    bert_folder: Path, tokenizer: Any, questions: QuestionSet
) -> None:
    network, pairs = PairNetwork.start(bert_folder).eval(), encode_pairs(questions, tokenizer)
    rows = pairs.rows([0, 1, 2])
    alone, together = (pair_scores(network, pairs, rows, max_tokens=most) for most in (1, 1_000))
    assert alone.tolist() == pytest.approx(together.tolist(), abs=1e-6)


def test_first_token_head_has_the_reports_shape() -> None:
    head = FirstTokenHead(768)
    assert sum(p.numel() for p in head.parameters()) == 768 * 256 + 256 + 256 * 2 + 2
    states = torch.zeros(1, 5, 768)
    outputs = head.layers(states[:, 0])
    assert head.eval()(states, torch.ones(1, 5)) == outputs[0, 0] - outputs[0, 1]


def test_mean_head_does_not_see_padding() -> None:
    head = MeanHead(8).eval()
    states = torch.randn(1, 6, 8)
    inside = torch.tensor([[1, 1, 1, 1, 0, 0]])
    assert torch.allclose(head(states, inside), head(states[:, :4], inside[:, :4]))


@pytest.mark.parametrize("depth", [0, 5])
def test_depth_out_of_range_is_refused(bert_folder: Path, depth: int) -> None:
    with pytest.raises(InputError, match=f"depth must be from 1 to 4, got {depth}"):
        PairNetwork.start(bert_folder, depth=depth)


def test_unknown_head_is_refused(bert_folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'mean'"):
        PairNetwork.start(bert_folder, head="meen")  # type: ignore[arg-type]


def test_truncated_weights_are_refused(bert_folder: Path) -> None:
    weights = bert_folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelError, match="cannot be loaded as a transformer"):
        PairNetwork.start(bert_folder)


def test_weights_of_another_shape_are_refused(bert_folder: Path) -> None:
    config = bert_folder / "config.json"
    config.write_text(config.read_text().replace('"hidden_size": 16', '"hidden_size": 32'))
    with pytest.raises(ModelError, match=r"LayerNorm\.bias has shape \(16,\), expected \(32,\)"):
        PairNetwork.start(bert_folder)


def test_pickled_weights_are_never_read(bert_folder: Path) -> None:
    (bert_folder / "model.safetensors").rename(bert_folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin, but pickled weights are never read"):
        PairNetwork.start(bert_folder)


@pytest.mark.usefixtures("transformers")
def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"No config\.json"):
        PairNetwork.start(tmp_path)
