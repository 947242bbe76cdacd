from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import load_file

from askline.errors import InputError
from askline.training.transformer.cross_encoder_folder import load_cross_encoder
from askline.training.transformer.pair_network import PairNetwork
from askline.training.transformer.sampled_lists import CONVERSATION_PLAN
from askline.training.transformer.transformer_training import TransformerRecipe
from research.recipes.general import (
    PLANS,
    GeneralRecipe,
    general_lists,
    general_parts,
    general_run,
    main,
    merged,
    run_file,
)


def test_conversations_are_separated_from_encyclopedic_text(data_folder: Path) -> None:
    rest, talk = general_parts(data_folder)
    assert (rest.plan, talk.plan) == (PLANS["chosen"], CONVERSATION_PLAN)
    assert {question.text for question in talk.questions} == {"where ?", "who ?"}
    assert [question.text for question in rest.questions[-2:]] == [
        "what is france ?",
        "when was austen born ?",
    ]


def test_the_plan_of_the_shipped_cascade_can_be_had_again(data_folder: Path) -> None:
    rest, talk = general_parts(data_folder, plan="first")
    assert (rest.plan, talk.plan) == (PLANS["first"], CONVERSATION_PLAN)
    assert PLANS["first"].hard_drawn == PLANS["first"].near_drawn == 0


def test_negatives_are_mined_once_and_then_read(
    tmp_path: Path, data_folder: Path, tokenizer: Any
) -> None:
    path = tmp_path / "work" / "negatives.npz"
    lists = general_lists(tokenizer, path, root=data_folder)
    written = path.stat().st_mtime_ns
    assert len(general_lists(tokenizer, path, root=data_folder)) == len(lists)
    assert path.stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_run_leaves_weights_and_a_log_and_no_checkpoint(
    tmp_path: Path, data_folder: Path, bert_folder: Path, tokenizer: Any
) -> None:
    lists = general_lists(tokenizer, tmp_path / "negatives.npz", root=data_folder)
    recipe = TransformerRecipe(epochs=1, batch_size=2, seed=4)
    history = general_run(bert_folder, lists, recipe, tmp_path / "runs", depth=2)
    assert len(history) == 1
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "run-4.jsonl",
        "run-4.safetensors",
    ]
    network = PairNetwork.start(bert_folder, depth=2)
    network.load_state_dict(load_file(run_file(tmp_path / "runs", 4)))


@pytest.mark.slow
def test_merged_weights_are_between_start_and_mean(
    tmp_path: Path, data_folder: Path, bert_folder: Path, tokenizer: Any
) -> None:
    lists = general_lists(tokenizer, tmp_path / "negatives.npz", root=data_folder)
    recipe = TransformerRecipe(epochs=1, batch_size=2, learning_rate=1e-2)
    for seed in (1, 2):
        general_run(bert_folder, lists, replace(recipe, seed=seed), tmp_path)
    network = PairNetwork.start(bert_folder)
    start = {name: value.clone() for name, value in network.state_dict().items()}
    merged(network, tmp_path, (1, 2), 0.5)
    first, second = (load_file(run_file(tmp_path, seed)) for seed in (1, 2))
    name = "encoder.classifier.weight"
    expected = 0.5 * start[name] + 0.25 * first[name] + 0.25 * second[name]
    assert torch.allclose(network.state_dict()[name], expected, atol=1e-6)
    assert not torch.allclose(first[name], second[name])


def _run(data_folder: Path, bert_folder: Path, out: Path, *more: str) -> Result:
    arguments = ["--data", str(data_folder), "--init", str(bert_folder), "--out", str(out)]
    return CliRunner().invoke(main, [*arguments, "--epochs", "1", *more], catch_exceptions=False)


@pytest.mark.slow
def test_the_command_writes_a_cross_encoder(
    tmp_path: Path, data_folder: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askline.training.training_log._SECONDS_PER_RECORD", -1)  # every step
    out = tmp_path / "model"
    result = _run(data_folder, bert_folder, out, "--seed", "1", "--seed", "2")
    assert result.exit_code == 0
    assert "Run 1: loss" in result.stderr
    assert "Run 2: loss" in result.stderr
    assert "Run 2: epoch 1  step 1 of 1  loss " in result.stderr
    load_cross_encoder(out)
    card = (out / "README.md").read_text()
    assert "2 runs (seeds 1, 2), 0.7 of the way" in card
    assert "--plan chosen --share 0.7" in card
    assert str(tmp_path) not in card


@pytest.mark.slow
def test_finished_runs_are_not_repeated(
    tmp_path: Path, data_folder: Path, bert_folder: Path
) -> None:
    _run(data_folder, bert_folder, tmp_path / "model", "--seed", "1")
    result = _run(data_folder, bert_folder, tmp_path / "model", "--seed", "1", "--share", "0")
    assert "Run 1" not in result.stderr
    start, found = (load_cross_encoder(folder)[0] for folder in (bert_folder, tmp_path / "model"))
    assert torch.equal(
        start.state_dict()["encoder.classifier.weight"],
        found.state_dict()["encoder.classifier.weight"],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": ()}, "seeds must be"),
        ({"seeds": (1, 1)}, "seeds must"),
        ({"share": 2.0}, "share"),
    ],
    ids=["none", "twice", "share"],
)
def test_impossible_recipes_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GeneralRecipe(**options)
