from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from askline.data import filter_questions
from askline.errors import InputError
from askline.training.checkpoint import Epoch
from askline.training.losses import Objective
from askline.training.training_log import StepRecord
from askline.training.transformer.pair_network import PairNetwork, measure
from askline.training.transformer.pair_sets import encode_pairs
from askline.training.transformer.sampled_lists import (
    SampledLists,
    SamplingPart,
    SamplingPlan,
    mine_negatives,
)
from askline.training.transformer.transformer_training import (
    TransformerDevSet,
    TransformerPhase,
    TransformerRecipe,
    train_transformer,
)
from askline.types import QuestionSet

RECIPE = TransformerRecipe(
    objective=Objective(point=1, list=1), epochs=2, learning_rate=1e-2, batch_size=2
)


class KilledError(Exception):
    pass


@pytest.fixture
def phases(tokenizer: Any, questions: QuestionSet) -> list[TransformerPhase]:
    pairs = encode_pairs(questions, tokenizer)
    return [
        TransformerPhase(pairs, RECIPE),
        TransformerPhase(pairs, TransformerRecipe(epochs=3, learning_rate=1e-2, batch_size=3)),
    ]


@pytest.fixture
def dev(tokenizer: Any, questions: QuestionSet) -> TransformerDevSet:
    return TransformerDevSet(questions, encode_pairs(questions, tokenizer))


@pytest.mark.slow
def test_training_learns_a_tiny_set(
    bert_folder: Path, phases: list[TransformerPhase], dev: TransformerDevSet
) -> None:
    network = PairNetwork.start(bert_folder)
    long = TransformerPhase(
        phases[0].lists, TransformerRecipe(epochs=30, learning_rate=5e-3, batch_size=4, seed=1)
    )
    history = train_transformer(network, [long], dev=dev)
    assert history[0].dev["MAP"] < 75.0  # all there is: one of four has no answer
    assert max(epoch.dev["MAP"] for epoch in history) == 75.0
    assert measure(network, dev.questions, dev.pairs)["MAP"] == 75.0  # the best epoch is kept


@pytest.mark.slow
def test_interrupted_training_ends_with_the_same_weights(
    tmp_path: Path, bert_folder: Path, phases: list[TransformerPhase], dev: TransformerDevSet
) -> None:
    whole = PairNetwork.start(bert_folder)
    expected = train_transformer(whole, phases, dev=dev)
    for stop in (1, 2, 4):  # inside a phase, and between two
        path = tmp_path / f"{stop}.pt"

        def kill(epoch: Epoch, stop: int = stop) -> None:
            if epoch.number == stop:
                raise KilledError

        with pytest.raises(KilledError):
            train_transformer(
                PairNetwork.start(bert_folder), phases, dev=dev, checkpoint=path, on_epoch=kill
            )
        again = PairNetwork.start(bert_folder)
        history = train_transformer(again, phases, dev=dev, checkpoint=path)
        assert [e.dev for e in history] == [e.dev for e in expected]
        for name, value in whole.state_dict().items():
            assert torch.equal(value, again.state_dict()[name]), name


@pytest.mark.slow
def test_slow_steps_are_recorded_singly_and_fast_ones_every_fifty(
    bert_folder: Path,
    phases: list[TransformerPhase],
    dev: TransformerDevSet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = TransformerRecipe(epochs=1, learning_rate=1e-2, batch_size=1)
    slow: list[StepRecord] = []
    clock = count(step=40)  # seconds: every look at it is later by so many
    with monkeypatch.context() as patch:
        patch.setattr(
            "askline.training.training_log.time",
            SimpleNamespace(perf_counter=clock.__next__),
        )
        train_transformer(
            PairNetwork.start(bert_folder),
            [TransformerPhase(phases[0].lists, recipe)],
            on_step=slow.append,
        )
    assert [(step.step, step.steps) for step in slow] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    fast: list[StepRecord] = []
    lists = dev.pairs.take(np.zeros(120, int))
    train_transformer(
        PairNetwork.start(bert_folder), [TransformerPhase(lists, recipe)], on_step=fast.append
    )
    assert [step.step for step in fast if step.step % 50 == 0] == [50, 100]


def test_gradients_do_not_depend_on_the_token_budget(
    bert_folder: Path, phases: list[TransformerPhase]
) -> None:
    results = []
    for tokens in (20, 10_000):
        recipe = TransformerRecipe(
            objective=Objective(point=0, list=1), epochs=1, batch_size=4, max_tokens=tokens
        )
        network = PairNetwork.start(bert_folder)
        for part in network.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        train_transformer(network, [TransformerPhase(phases[0].lists, recipe)])
        results.append(network.state_dict())
    for name, value in results[0].items():
        assert torch.allclose(value, results[1][name], atol=1e-5), name


def test_out_of_memory_is_retried_with_smaller_parts(
    bert_folder: Path, phases: list[TransformerPhase]
) -> None:
    class Cramped(PairNetwork):
        """Has room for 100 tokens."""

        def forward(self, batch: Any) -> torch.Tensor:
            if batch["input_ids"].numel() > 100:
                raise torch.cuda.OutOfMemoryError
            return super().forward(batch)

    started = PairNetwork.start(bert_folder)
    network = Cramped(started.encoder, "plain", None)
    notes: list[str] = []
    recipe = TransformerRecipe(epochs=1, batch_size=4, max_tokens=2048)
    with pytest.raises(torch.cuda.OutOfMemoryError):  # 512 is the least that is tried
        train_transformer(
            network, [TransformerPhase(phases[0].lists, recipe)], on_note=notes.append
        )
    assert notes == [
        "Out of memory: continuing with 1024 tokens per pass.",
        "Out of memory: continuing with 512 tokens per pass.",
    ]


def test_a_checkpoint_of_other_settings_is_refused(
    tmp_path: Path, bert_folder: Path, phases: list[TransformerPhase]
) -> None:
    path = tmp_path / "state.pt"
    train_transformer(PairNetwork.start(bert_folder), phases[:1], checkpoint=path)
    with pytest.raises(InputError, match="other settings"):
        train_transformer(PairNetwork.start(bert_folder), phases, checkpoint=path)


def test_the_random_state_of_the_caller_is_restored(
    bert_folder: Path, phases: list[TransformerPhase]
) -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    network = PairNetwork.start(bert_folder)
    torch.manual_seed(1)
    train_transformer(network, phases[:1])
    assert torch.rand(1) == expected


@pytest.mark.parametrize(
    "name",
    ["epochs", "batch_size", "learning_rate", "max_tokens", "max_gradient_norm", "max_seconds"],
)
def test_recipe_values_must_be_positive(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be positive, got 0"):
        TransformerRecipe(**{name: 0})  # type: ignore[arg-type]


def test_training_without_a_set_is_refused(bert_folder: Path) -> None:
    with pytest.raises(InputError, match="at least one set"):
        train_transformer(PairNetwork.start(bert_folder), [])


def test_time_that_runs_out_cuts_steps(bert_folder: Path, phases: list[TransformerPhase]) -> None:
    notes: list[int] = []

    class Counting(PairNetwork):
        def forward(self, batch: Any) -> torch.Tensor:
            notes.append(len(batch["input_ids"]))
            return super().forward(batch)

    network = Counting(PairNetwork.start(bert_folder).encoder, "plain", None)
    recipe = TransformerRecipe(epochs=2, batch_size=1, max_seconds=1e-6)
    history = train_transformer(network, [TransformerPhase(phases[0].lists, recipe)])
    assert len(history) == 2
    assert len(notes) == 2  # one step an epoch, where four would be due


def test_the_last_epoch_is_kept_on_request(
    bert_folder: Path, phases: list[TransformerPhase], dev: TransformerDevSet
) -> None:
    recipe = TransformerRecipe(epochs=3, learning_rate=1e-2, batch_size=2)
    network, plain = PairNetwork.start(bert_folder), PairNetwork.start(bert_folder)
    train_transformer(
        network, [TransformerPhase(phases[0].lists, replace(recipe, keep="last"))], dev=dev
    )
    train_transformer(
        plain, [TransformerPhase(phases[0].lists, recipe)]
    )  # without dev there is no best
    for name, value in network.state_dict().items():
        assert torch.equal(value, plain.state_dict()[name]), name


def test_lists_drawn_by_the_network_can_be_learned_and_resumed(
    tmp_path: Path, bert_folder: Path, tokenizer: Any, questions: QuestionSet
) -> None:
    asked = filter_questions(questions, "answerable").questions
    lists = SampledLists(
        "tiny",
        [SamplingPart(asked, SamplingPlan(elsewhere=1, drawn=4))],
        mine_negatives(asked),
        tokenizer,
    )
    phase = TransformerPhase(lists, TransformerRecipe(epochs=2, batch_size=2, learning_rate=1e-2))
    whole, again = PairNetwork.start(bert_folder), PairNetwork.start(bert_folder)
    expected = train_transformer(whole, [phase])

    def kill(_: Epoch) -> None:
        raise KilledError

    with pytest.raises(KilledError):
        train_transformer(again, [phase], checkpoint=tmp_path / "c.pt", on_epoch=kill)
    again = PairNetwork.start(bert_folder)
    history = train_transformer(again, [phase], checkpoint=tmp_path / "c.pt")
    assert [epoch.loss for epoch in history] == [epoch.loss for epoch in expected]
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
