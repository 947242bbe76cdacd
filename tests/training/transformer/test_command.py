from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from askline.cli.train_transformer import transformer
from askline.training.transformer.folder import load_network

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


def test_command_without_a_set_says_so(tmp_path: Path, bert_folder: Path) -> None:
    result = CliRunner().invoke(
        transformer, ["--init", str(bert_folder), "--out", str(tmp_path / "model")]
    )
    assert "got neither" in str(result.exception)
