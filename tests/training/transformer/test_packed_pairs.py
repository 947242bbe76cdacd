"""Pairs end to end give the scores and gradients of padded ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.training.transformer.pair_network import Head, PairNetwork
from askline.training.transformer.pair_sets import PairSet, encode_pairs
from askline.types import QuestionSet


@pytest.fixture
def pairs(tokenizer: Any, questions: QuestionSet) -> PairSet:
    return encode_pairs(questions, tokenizer)


@pytest.mark.parametrize("head", ["plain", "first-token", "mean"])
def test_packed_scores_are_the_padded_ones(bert_folder: Path, pairs: PairSet, head: Head) -> None:
    torch.manual_seed(1)
    network = PairNetwork.start(bert_folder, head=head).eval()
    rows = np.arange(len(pairs.tokens))
    assert network.packs
    padded = network(pairs.collate(rows, "cpu"))
    packed = network.packed(pairs.pack(rows, "cpu"))
    assert torch.allclose(padded, packed, atol=1e-5)


def test_packed_gradients_are_the_padded_ones(bert_folder: Path, pairs: PairSet) -> None:
    network = PairNetwork.start(bert_folder).eval()
    rows = np.arange(len(pairs.tokens))
    found = []
    for scores in (
        network(pairs.collate(rows, "cpu")),
        network.packed(pairs.pack(rows, "cpu")),
    ):
        network.zero_grad()
        scores.square().sum().backward()
        found.append({n: p.grad for n, p in network.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    for name, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][name], rtol=1e-3, atol=1e-4), name


def test_other_families_are_padded(transformers: Any) -> None:
    config = transformers.RobertaConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_labels=1
    )
    encoder = transformers.RobertaForSequenceClassification(config)
    assert not PairNetwork(encoder, "plain", None).packs


def test_pack_keeps_the_given_order(pairs: PairSet) -> None:
    packed = pairs.pack(np.array([3, 0]), "cpu")
    first, second = pairs.tokens[3], pairs.tokens[0]
    assert packed.tokens.tolist() == [*first.tolist(), *second.tolist()]
    assert packed.positions.tolist() == [*range(len(first)), *range(len(second))]
    assert packed.starts.tolist() == [0, len(first), len(first) + len(second)]
    assert packed.longest == max(len(first), len(second))
