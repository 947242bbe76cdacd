from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.errors import InputError, ModelError
from askline.training.transformer.cross_encoder_folder import (
    TransformerRanker,
    load_cross_encoder,
    load_tokenizer,
    save_cross_encoder,
)
from askline.training.transformer.pair_network import PairNetwork

QUESTION = "who wrote emma ?"
CANDIDATES = ["emma is a novel .", "jane austen wrote emma .", "paris", "dune " * 60]


def note(folder: Path, place: str, activation: str) -> None:
    """Write down the activation where the library of some age would."""
    name = {
        "Identity": "torch.nn.modules.linear.Identity",
        "Sigmoid": "torch.nn.modules.activation.Sigmoid",
    }.get(activation, activation)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if place == "first":
        config["sbert_ce_default_activation_function"] = name
    else:
        config["sentence_transformers"] = {"activation_fn": name}
    path.write_text(json.dumps(config))


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["Identity", "Sigmoid"])
@pytest.mark.parametrize("place", ["first", "second"])
def test_scores_equal_those_of_cross_encoder(
    bert_folder: Path, place: str, activation: str
) -> None:
    library = pytest.importorskip(
        "sentence_transformers", reason="sentence-transformers is not installed"
    )
    note(bert_folder, place, activation)
    theirs = library.CrossEncoder(str(bert_folder), device="cpu").predict(
        [(QUESTION, candidate) for candidate in CANDIDATES]
    )
    ours = TransformerRanker.load(bert_folder).score(QUESTION, CANDIDATES)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


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
    ours = TransformerRanker.load(folder).score(QUESTION, CANDIDATES)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert min(ours) < 0 or max(ours) > 1  # logits: no sigmoid crept in


def test_saved_and_loaded_weights_are_the_same(
    tmp_path: Path, bert_folder: Path, tokenizer: Any
) -> None:
    network = PairNetwork.start(bert_folder)
    loaded, _, activation = load_cross_encoder(
        save_cross_encoder(network, tokenizer, tmp_path / "saved")
    )
    assert activation == "identity"
    for name, value in network.state_dict().items():
        assert loaded.state_dict()[name].equal(value), name


def test_scores_do_not_depend_on_the_batches(bert_folder: Path) -> None:
    ranker = TransformerRanker.load(bert_folder)
    whole = ranker.score(QUESTION, CANDIDATES)
    small = TransformerRanker(
        ranker.network, ranker.tokenizer, sigmoid=True, max_length=48, max_tokens=1
    )
    np.testing.assert_allclose(small.score(QUESTION, CANDIDATES), whole, atol=1e-6)


def test_ranker_takes_part_in_the_algebra(bert_folder: Path) -> None:
    ranker = TransformerRanker.load(bert_folder)
    hits = (ranker % 2 >> ranker).rank(QUESTION, CANDIDATES)
    assert sorted(hit.index for hit in hits) == [0, 1, 2, 3]
    assert str(ranker) == f"transformer({str(bert_folder)!r})"


def test_an_encoder_without_a_classifier_is_refused(
    tmp_path: Path, bert_folder: Path, tokenizer: Any
) -> None:
    folder = tmp_path / "bare"
    PairNetwork.start(bert_folder, head="mean").encoder.save_pretrained(folder)  # type: ignore[operator]
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match=r"not a cross-encoder: it has no classifier\.bias"):
        load_cross_encoder(folder)


def test_an_unknown_activation_is_refused(bert_folder: Path) -> None:
    note(bert_folder, "first", "torch.nn.modules.activation.Tanh")
    with pytest.raises(ModelError, match="has activation 'torch.nn.modules.activation.Tanh'"):
        load_cross_encoder(bert_folder)


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
