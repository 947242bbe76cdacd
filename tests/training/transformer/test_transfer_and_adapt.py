from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from askline.errors import InputError
from askline.training.transformer.pair_network import PairNetwork
from askline.training.transformer.transformer_training import (
    ADAPT,
    TransferAndAdapt,
    TransformerRecipe,
    transfer_and_adapt,
)
from askline.types import Question, QuestionSet

FAST = TransferAndAdapt(
    TransformerRecipe(epochs=1, batch_size=2), TransformerRecipe(epochs=2, batch_size=2)
)


def test_both_steps_are_taken_and_measured(
    bert_folder: Path, tokenizer: Any, questions: QuestionSet
) -> None:
    network = PairNetwork.start(bert_folder)
    history = transfer_and_adapt(
        network, tokenizer, FAST, transfer=[questions, questions], adapt=questions, dev=questions
    )
    assert [epoch.number for epoch in history] == [1, 2, 3]
    assert history[0].dev.keys() == {"MAP", "MRR", "P@1"}


def test_share_goes_part_of_the_way(
    bert_folder: Path, tokenizer: Any, questions: QuestionSet
) -> None:
    states = []
    for share in (0.0, 0.5, 1.0):
        network = PairNetwork.start(bert_folder)
        how = TransferAndAdapt(FAST.transfer, FAST.adapt, share=share)
        transfer_and_adapt(network, tokenizer, how, transfer=[questions])
        states.append(network.state_dict())
    start = PairNetwork.start(bert_folder).state_dict()
    for name, value in start.items():
        assert torch.equal(states[0][name], value)
        assert torch.allclose(states[1][name], (value + states[2][name]) / 2, atol=1e-6)


def test_questions_without_candidates_are_left_out(
    bert_folder: Path, tokenizer: Any, questions: QuestionSet
) -> None:
    bare = QuestionSet("bare", (*questions.questions, Question("Q9", "who ?", ())))
    network = PairNetwork.start(bert_folder)
    assert len(transfer_and_adapt(network, tokenizer, FAST, transfer=[bare], adapt=bare)) == 3


def test_seed_is_set_in_both_steps() -> None:
    how = TransferAndAdapt().with_seed(7)
    assert (how.transfer.seed, how.adapt.seed) == (7, 7)
    assert how.adapt.learning_rate == ADAPT.learning_rate


def test_no_set_is_refused(bert_folder: Path, tokenizer: Any) -> None:
    with pytest.raises(InputError, match="got neither"):
        transfer_and_adapt(PairNetwork.start(bert_folder), tokenizer, FAST)


def test_transfer_lists_are_drawn_with_a_negatives_file(
    tmp_path: Path, bert_folder: Path, tokenizer: Any, questions: QuestionSet
) -> None:
    path = tmp_path / "negatives.npz"
    states = []
    for negatives in (None, path):
        network = PairNetwork.start(bert_folder)
        transfer_and_adapt(network, tokenizer, FAST, transfer=[questions], negatives=negatives)
        states.append(network.state_dict()["encoder.classifier.weight"])
    assert path.exists()
    assert not torch.equal(*states)
