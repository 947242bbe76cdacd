from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from askline.cli.train_cascade import cascade
from askline.errors import InputError
from askline.training.cascade.cascade_network import CascadeNetwork, CascadeShape, load_cascade
from askline.training.cascade.cascade_run import Making


def run(*options: str | Path) -> Result:
    return CliRunner().invoke(cascade, [str(option) for option in options], catch_exceptions=False)


@pytest.fixture
def basic(bert_folder: Path, squad_file: Path) -> list[str | Path]:
    return ["--init", bert_folder, "--transfer", f"squad1:{squad_file}", "--depths", "1,2,4"]


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
        "Started from: bert; taught by: bert",
        "Seeds: 1, 2 (the mean of their weights)",
        "CC BY-SA 4.0",
        "| MAP at 2 |",
    ):
        assert line in card
    history = json.loads((out / "training.json").read_text())
    assert [epoch["number"] for epoch in history["2"]] == [1, 2]
    assert not list(tmp_path.glob("*.checkpoint.*"))
    assert (tmp_path / "cascade.negatives.npz").exists()


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


def test_command_without_a_set_says_so(tmp_path: Path, bert_folder: Path) -> None:
    with pytest.raises(InputError, match="got neither"):
        run("--init", bert_folder, "--depths", "2,4", "--out", tmp_path / "model")


def test_wrong_ways_of_making_are_refused() -> None:
    with pytest.raises(InputError, match="different ones"):
        Making(CascadeShape((2,)), seeds=(1, 1))
    with pytest.raises(InputError, match="share must be from 0 to 1"):
        Making(CascadeShape((2,)), share=2.0)
    with pytest.raises(InputError, match="must be 'mixed' or 'first', got 'mean'"):
        Making(CascadeShape((2,), "mean", reader=False), anchored=True)
    with pytest.raises(InputError, match="without a reader"):
        Making(CascadeShape((2,), "mixed"), anchored=True)
