from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from askline.errors import ModelError
from askline.training.transformer.cross_encoder_folder import (
    load_network,
    save_network,
)
from askline.training.transformer.pair_network import PairNetwork
from askline.training.transformer.pair_sets import encode_pairs
from askline.types import QuestionSet


@pytest.mark.parametrize("head", ["plain", "first-token", "mean"])
def test_a_saved_network_scores_as_before(
    tmp_path: Path, bert_folder: Path, tokenizer: Any, questions: QuestionSet, head: Any
) -> None:
    network = PairNetwork.start(bert_folder, head=head, depth=2).eval()
    loaded, its_tokenizer = load_network(save_network(network, tokenizer, tmp_path / "saved"))
    assert (loaded.head, loaded.depth) == (head, 2)
    pairs = encode_pairs(questions, its_tokenizer)
    batch = pairs.collate(pairs.rows([0, 1, 2]), "cpu")
    with torch.inference_mode():
        assert torch.equal(network(batch), loaded.eval()(batch))


@pytest.fixture
def mean_folder(tmp_path: Path, bert_folder: Path, tokenizer: Any) -> Path:
    return save_network(PairNetwork.start(bert_folder, head="mean"), tokenizer, tmp_path / "mean")


def test_a_truncated_head_is_refused(mean_folder: Path) -> None:
    head = mean_folder / "head.safetensors"
    head.write_bytes(head.read_bytes()[:-10])
    with pytest.raises(
        ModelError, match=r"head\.safetensors is damaged or belongs to another network"
    ):
        load_network(mean_folder)


def test_a_head_of_another_kind_is_refused(mean_folder: Path) -> None:
    config = mean_folder / "config.json"
    config.write_text(config.read_text().replace('"mean"', '"first-token"'))
    with pytest.raises(ModelError, match="belongs to another network"):
        load_network(mean_folder)


def test_a_head_that_the_config_does_not_name_is_refused(mean_folder: Path) -> None:
    config = mean_folder / "config.json"
    config.write_text(config.read_text().replace('"askline_head": "mean"', '"other": 1'))
    with pytest.raises(ModelError, match="names None as the head"):
        load_network(mean_folder)
