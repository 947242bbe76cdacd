from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.errors import InputError, ModelError
from askline.training.transformer.cross_encoder_folder import (
    load_cross_encoder,
    load_tokenizer,
    save_cross_encoder,
)
from askline.training.transformer.pair_network import PairNetwork, list_scores
from askline.training.transformer.pair_sets import TextTable

QUESTION = "who wrote emma ?"
CANDIDATES = ["emma is a novel .", "jane austen wrote emma .", "paris", "dune " * 60]


def scores(network: PairNetwork, tokenizer: Any) -> list[float]:
    pairs = TextTable.encode([QUESTION, *CANDIDATES], tokenizer, max_length=48).pairs(
        [(0, [1, 2, 3, 4])]
    )
    (found,) = list_scores(network, pairs)
    return list(map(float, found))


@pytest.mark.slow
def test_scores_equal_those_of_cross_encoder(bert_folder: Path) -> None:
    library = pytest.importorskip(
        "sentence_transformers", reason="sentence-transformers is not installed"
    )
    theirs = library.CrossEncoder(str(bert_folder), device="cpu").predict(
        [(QUESTION, candidate) for candidate in CANDIDATES], activation_fn=torch.nn.Identity()
    )
    np.testing.assert_allclose(scores(*load_cross_encoder(bert_folder)), theirs, atol=1e-4)


@pytest.mark.slow
def test_cross_encoder_loads_a_saved_folder(
    tmp_path: Path, bert_folder: Path, tokenizer: Any
) -> None:
    library = pytest.importorskip(
        "sentence_transformers", reason="sentence-transformers is not installed"
    )
    network = PairNetwork.start(bert_folder, depth=3)
    folder = save_cross_encoder(network, tokenizer, tmp_path / "saved")
    theirs = library.CrossEncoder(str(folder), device="cpu").predict(
        [(QUESTION, candidate) for candidate in CANDIDATES]
    )
    ours = scores(*load_cross_encoder(folder))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert min(ours) < 0 or max(ours) > 1  # logits: no sigmoid crept in


def test_saved_and_loaded_weights_are_the_same(
    tmp_path: Path, bert_folder: Path, tokenizer: Any
) -> None:
    network = PairNetwork.start(bert_folder)
    loaded, _ = load_cross_encoder(save_cross_encoder(network, tokenizer, tmp_path / "saved"))
    for name, value in network.state_dict().items():
        assert loaded.state_dict()[name].equal(value), name


def test_an_encoder_without_a_classifier_is_refused(
    tmp_path: Path, bert_folder: Path, tokenizer: Any
) -> None:
    folder = tmp_path / "bare"
    PairNetwork.start(bert_folder, head="mean").encoder.save_pretrained(folder)  # type: ignore[operator]
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match=r"not a cross-encoder: it has no classifier\.bias"):
        load_cross_encoder(folder)


def test_other_heads_make_no_cross_encoder(
    tmp_path: Path, bert_folder: Path, tokenizer: Any
) -> None:
    network = PairNetwork.start(bert_folder, head="mean")
    with pytest.raises(InputError, match="Only the plain head can be saved"):
        save_cross_encoder(network, tokenizer, tmp_path / "out")


def test_a_folder_without_a_tokenizer_is_refused(bert_folder: Path) -> None:
    for path in (*bert_folder.glob("*token*"), *bert_folder.glob("vocab*")):
        path.unlink()
    with pytest.raises(ModelError, match="tokenizer in"):
        load_tokenizer(bert_folder)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No model folder"):
        load_cross_encoder(tmp_path / "nowhere")
