from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

import askline
from askline.cli.train_cascade import cascade
from askline.errors import InputError
from askline.training.cascade.cascade_export import export_cascade
from askline.training.cascade.cascade_network import CascadeNetwork, CascadeShape, load_cascade
from askline.training.cascade.cascade_workflow import CascadePlan


def run(*options: str | Path) -> Result:
    return CliRunner().invoke(cascade, [str(option) for option in options], catch_exceptions=False)


@pytest.fixture
def basic(bert_folder: Path, squad_file: Path) -> list[str | Path]:
    return ["--init", bert_folder, "--transfer", f"squad1:{squad_file}", "--depths", "1,2,4"]


@pytest.mark.slow
def test_command_transfers_adapts_and_writes_a_folder(
    tmp_path: Path, basic: list[str | Path], bert_folder: Path, squad_file: Path
) -> None:
    out = tmp_path / "cascade"
    result = run(
        *basic,
        *("--adapt", f"squad1:{squad_file}", "--dev", f"squad1:{squad_file}", "--out", out),
        *("--teacher", bert_folder, "--transfer-epochs", "1", "--adapt-epochs", "1"),
        *("--seed", "1", "--seed", "2", "--share", "0.9"),
    )
    assert result.stdout.count("MAP at 2") == 5  # the fit, and two epochs of two seeds
    network, _ = load_cascade(out)
    assert network.shape == CascadeShape((1, 2, 4), "mean", reader=True)
    card = (out / "README.md").read_text()
    for line in (
        "Classifiers after layers 1, 2, 4, head `mean`, and a reader",
        "Started from: bert; teacher: bert",
        "Seeds: 1, 2 (the mean of their weights)",
        "CC BY-SA 4.0",
        "| MAP at 2 |",
    ):
        assert line in card
    history = json.loads((out / "torch" / "training.json").read_text())
    assert [epoch["number"] for epoch in history["2"]] == [1, 2]
    assert not list(tmp_path.glob("*.checkpoint.*"))
    assert (tmp_path / "cascade.negatives.npz").exists()


@pytest.mark.slow
def test_the_written_folder_ranks_without_another_step(
    tmp_path: Path, basic: list[str | Path], squad_file: Path
) -> None:
    out = tmp_path / "cascade"
    result = run(
        *basic, "--transfer-epochs", "1", "--adapt-epochs", "1", "--out", out,
        *("--adapt", f"squad1:{squad_file}", "--dev", f"squad1:{squad_file}"),
    )  # fmt: skip
    candidates = ["paris is a city .", "jane austen wrote emma .", "emma is a novel ."]
    ranker = askline.load(f"cascade({str(out)!r})")
    hits = ranker.rank("who wrote emma ?", candidates)
    assert sorted(hit.index for hit in hits) == [0, 1, 2]
    names = sorted(path.name for path in out.iterdir())
    assert names == ["README.md", "config.json", "tokenizer.json", "torch", "weights.safetensors"]
    assert f"Use it as: cascade({str(out)!r})" in result.stderr
    for step in ("tune cascade", "train reader --model"):
        assert f"askline {step} {out} --on squad1:{squad_file}" in result.stderr
    again = tmp_path / "float"
    pairs = [("who wrote emma ?", text) for text in candidates]
    made = export_cascade(out, again, precision="float32", pairs=pairs)  # from the torch weights
    assert made.agreement.largest < 1e-3


def test_command_without_export_writes_only_the_torch_weights(
    tmp_path: Path, basic: list[str | Path]
) -> None:
    out = tmp_path / "cascade"
    run(*basic, "--transfer-epochs", "1", "--no-export", "--out", out)
    assert [path.name for path in out.iterdir()] == ["torch"]
    assert load_cascade(out)[0].shape.depths == (1, 2, 4)


def test_an_encoder_that_cannot_be_exported_is_refused_before_training(
    tmp_path: Path, transformers: Any, tokenizer: Any, squad_file: Path
) -> None:
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, num_labels=1,
    )  # fmt: skip
    transformers.RobertaForSequenceClassification(config).save_pretrained(tmp_path / "roberta")
    tokenizer.save_pretrained(tmp_path / "roberta")
    given = ("--init", tmp_path / "roberta", "--depths", "1,2", "--out", tmp_path / "cascade")
    with pytest.raises(InputError, match="Only BERT encoders run without torch, got RobertaModel"):
        run(*given, "--transfer", f"squad1:{squad_file}")


@pytest.mark.slow
def test_command_adapts_a_cascade(
    tmp_path: Path, basic: list[str | Path], squad_file: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    shape = ("--head", "first", "--no-reader")
    run(*basic, *shape, "--out", first, "--transfer-epochs", "1", "--loss", "drawn")
    again = ("--init", first, "--depths", "1,2,4", "--adapt", f"squad1:{squad_file}")
    run(*again, *shape, "--out", second, "--adapt-epochs", "1")
    assert load_cascade(second)[0].shape.head == "first"
    with pytest.raises(InputError, match="another shape"):
        run(*again, "--out", second)


@pytest.mark.slow
def test_command_holds_full_depth_to_the_start(
    tmp_path: Path, basic: list[str | Path], bert_folder: Path
) -> None:
    out = tmp_path / "cascade"
    how = ("--anchored", "--head", "mixed", "--no-reader", "--transfer-epochs", "1")
    run(*basic, *how, "--teacher", bert_folder, "--out", out)
    network, _ = load_cascade(out)
    assert network.shape == CascadeShape((1, 2, 4), "mixed", reader=False)
    start = CascadeNetwork.start(bert_folder, network.shape)
    for name, own in start.classifiers["4"].state_dict().items():
        assert torch.equal(own, network.classifiers["4"].state_dict()[name])
    assert "Full depth was held to the start" in (out / "README.md").read_text()
    with pytest.raises(InputError, match="give both the same folder"):
        run(*basic, *how, "--out", out)
    bare, rest = tmp_path / "bare", basic[2:]
    start.encoder.save_pretrained(bare)  # type: ignore[operator]
    for file in bert_folder.glob("*token*"):
        shutil.copy(file, bare)
    with pytest.raises(InputError, match="no classifier of its own"):
        run("--init", bare, *rest, *how, "--teacher", bare, "--out", out)


def test_command_without_a_set_is_refused(tmp_path: Path, bert_folder: Path) -> None:
    with pytest.raises(InputError, match="got neither"):
        run("--init", bert_folder, "--depths", "2,4", "--out", tmp_path / "model")


def test_invalid_plans_are_refused() -> None:
    with pytest.raises(InputError, match="different ones"):
        CascadePlan(CascadeShape((2,)), seeds=(1, 1))
    with pytest.raises(InputError, match="share must be from 0 to 1"):
        CascadePlan(CascadeShape((2,)), share=2.0)
    with pytest.raises(InputError, match="must be 'mixed' or 'first', got 'mean'"):
        CascadePlan(CascadeShape((2,), "mean", reader=False), anchored=True)
    with pytest.raises(InputError, match="cannot have a reader"):
        CascadePlan(CascadeShape((2,), "mixed"), anchored=True)
