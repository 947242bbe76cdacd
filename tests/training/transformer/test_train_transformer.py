from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from askline.cli.train_transformer import transformer
from askline.training.transformer.cross_encoder_folder import load_network

ROWS = [
    {
        "question": "who wrote emma ?",
        "candidates": ["jane austen wrote emma .", "paris is a city ."],
        "labels": [1, 0],
    },
    {
        "question": "where is paris ?",
        "candidates": ["jane austen is a author .", "paris is the capital of france ."],
        "labels": [0, 1],
    },
]


@pytest.fixture
def jsonl(tmp_path: Path) -> str:
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(path)


@pytest.mark.parametrize("head", ["plain", "mean"])
def test_command_writes_a_folder_with_a_card(
    tmp_path: Path, bert_folder: Path, jsonl: str, head: str
) -> None:
    out = tmp_path / "model"
    result = CliRunner().invoke(
        transformer,
        [
            *("--init", str(bert_folder), "--transfer", jsonl, "--adapt", jsonl, "--dev", jsonl),
            *("--out", str(out), "--depth", "2", "--head", head, "--adapt-epochs", "1"),
        ],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.count("MAP") == 3
    network, _ = load_network(out)
    assert (network.depth, network.head) == (2, head)
    assert "Started from: bert" in (out / "README.md").read_text()
    rows = [json.loads(line) for line in (out / "training.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert rows[0]["dev"].keys() == {"MAP", "MRR", "P@1"}
    assert not list(tmp_path.glob("*.checkpoint.pt"))


def test_slow_steps_are_printed_to_stderr(
    tmp_path: Path, bert_folder: Path, jsonl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askline.training.training_log._SECONDS_PER_RECORD", -1)
    out = tmp_path / "model"
    options = ("--init", str(bert_folder), "--adapt", jsonl, "--out", str(out))
    result = CliRunner().invoke(transformer, [*options, "--adapt-epochs", "2"])
    assert result.exit_code == 0, result.output
    for epoch in (1, 2):
        assert f"epoch {epoch}  step 1 of 1  loss " in result.stderr
        assert f"epoch {epoch}  step" not in result.stdout
    rows = [json.loads(line) for line in (out / "training.jsonl").read_text().splitlines()]
    assert [row.get("step") for row in rows] == [1, None, 1, None]


def test_command_without_a_set_is_refused(tmp_path: Path, bert_folder: Path) -> None:
    result = CliRunner().invoke(
        transformer, ["--init", str(bert_folder), "--out", str(tmp_path / "model")]
    )
    assert "got neither" in str(result.exception)


@pytest.mark.parametrize("loss", ["point", "list", "pair"])
def test_command_takes_a_loss(tmp_path: Path, bert_folder: Path, jsonl: str, loss: str) -> None:
    arguments = ["--init", str(bert_folder), "--adapt", jsonl, "--loss", loss]
    losses = {}
    for name, own in (("usual", arguments[:-2]), ("asked", arguments)):
        out = tmp_path / name
        result = CliRunner().invoke(
            transformer, [*own, "--out", str(out), "--adapt-epochs", "1"], catch_exceptions=False
        )
        assert result.exit_code == 0, result.output
        losses[name] = json.loads((out / "training.jsonl").read_text())["loss"]
    assert (losses["asked"] == losses["usual"]) == (loss == "point")  # what adapting takes


def test_command_refuses_a_plot_before_it_trains(
    tmp_path: Path, bert_folder: Path, jsonl: str
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    out = tmp_path / "model"
    arguments = ["--init", str(bert_folder), "--adapt", jsonl, "--out", str(out)]
    result = CliRunner().invoke(transformer, [*arguments, "--plot", str(tmp_path / "plot.xyz")])
    assert "got 'plot.xyz'" in str(result.exception)
    assert not out.exists()


def test_command_given_again_after_a_kill_at_its_very_end(
    tmp_path: Path, bert_folder: Path, jsonl: str
) -> None:
    """All is written but the checkpoint, which was to be removed next."""
    out, checkpoint = tmp_path / "model", tmp_path / "model.checkpoint.pt"
    arguments = ["--init", str(bert_folder), "--adapt", jsonl, "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", lambda path, **_: None)
        CliRunner().invoke(transformer, arguments, catch_exceptions=False)
    weights, journal = out / "model.safetensors", out / "training.jsonl"
    before = weights.read_bytes(), journal.read_text()
    assert checkpoint.exists()
    result = CliRunner().invoke(transformer, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert (weights.read_bytes(), journal.read_text()) == before
    assert not checkpoint.exists()
