from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch: pip install '.[train]'")

from askline.models.word_vectors import WordVectors
from askline.text.words import split_words

from .conftest import Run


@pytest.fixture
def vectors(questions: Path) -> Path:
    """Vectors for every word of the questions, beside them."""
    known = sorted(set(split_words(questions.read_text("utf-8"))))
    rows = np.random.default_rng(0).standard_normal((len(known), 8)).astype(np.float32)
    WordVectors.from_rows(known, rows, name="tiny").save("tiny.safetensors")
    return Path("tiny.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("cosinet", ["--variant", "birnn", "--channel", "related", "--channel", "exact"]),
        ("compare-aggregate", ["--loss", "point"]),
        ("relational-cnn", []),
    ],
    ids=["cosinet", "compare-aggregate", "relational-cnn"],
)
def test_train_writes_a_folder_that_a_spec_can_name(
    run: Run, questions: Path, vectors: Path, network: str, options: list[str]
) -> None:
    given = ["--on", str(questions), "--dev", str(questions), "--vectors", str(vectors)]
    result = run("train", network, *given, "--out", "model", "--epochs", "2", *options)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["epoch", "1"], ["epoch", "2"]]
    assert all("MAP" in line and "loss" in line for line in lines)
    assert f"{network}('model')" in result.stderr
    assert sorted(file.name for file in Path().iterdir()) == ["emma.jsonl", "model", str(vectors)]
    measured = run("eval", f"{network}('model')", "--on", str(questions), "--json")
    assert measured.exit_code == 0, measured.output
    assert json.loads(measured.stdout)["MAP"] == pytest.approx(float(lines[1].split()[5]), abs=0.01)


def test_train_goes_on_from_a_folder(run: Run, questions: Path, vectors: Path) -> None:
    given = ["--on", str(questions), "--vectors", str(vectors)]
    assert run("train", "relational-cnn", *given, "--out", "first").exit_code == 0
    again = run("train", "relational-cnn", *given[:2], "--out", "second", "--init", "first")
    assert again.exit_code == 0, again.output
    kept = WordVectors.load("second/vectors.safetensors")  # those of the folder it started from
    assert kept.words == WordVectors.load(vectors).words
    other = run("train", "cosinet", *given, "--out", "third", "--init", "first")
    assert other.exit_code == 1
    assert "must hold a cosinet or cosinet-filter model" in other.stderr


@pytest.mark.slow
def test_train_fine_tunes_the_shipped_cosinet(run: Run, questions: Path) -> None:
    given = ["--on", str(questions), "--dev", str(questions), "--epochs", "1"]
    result = run("train", "cosinet", *given, "--init", "cosinet", "--out", "mine")
    assert result.exit_code == 0, result.output
    assert not Path("mine/vectors.safetensors").exists()  # the shipped ones are named
    measured = run("eval", "cosinet('mine')", "--on", str(questions), "--json")
    assert measured.exit_code == 0, measured.output
    shown = float(result.stdout.splitlines()[0].split()[5])
    assert json.loads(measured.stdout)["MAP"] == pytest.approx(shown, abs=0.01)
    again = run("train", "cosinet", *given[:2], "--init", "mine", "--out", "again")
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize(
    ("network", "options", "message"),
    [
        ("cosinet", ["--variant", "birnn"], "--variant cannot be used with --init cosinet"),
        ("cosinet", ["--loss", "point"], "--loss point cannot be used with --init cosinet"),
        ("relational-cnn", [], "No model folder at cosinet"),
    ],
)
def test_options_that_the_shipped_cosinet_does_not_have(
    run: Run, questions: Path, network: str, options: list[str], message: str
) -> None:
    given = ["--on", str(questions), "--init", "cosinet", "--out", "mine", *options]
    result = run("train", network, *given)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert not Path("mine").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--keep", "best"], "--keep best needs --dev SET"),
        (["--channel", "relate"], "No channel 'relate'"),
        (["--out", "."], "exists and is not a model folder"),
        (["--epochs", "0"], "--epochs"),
        (["--vectors", "emma.jsonl"], "emma.jsonl"),
    ],
    ids=["no data", "no dev", "no channel", "folder in use", "no epochs", "no vectors"],
)
def test_train_refuses_what_it_cannot_use(
    run: Run, questions: Path, vectors: Path, options: list[str], message: str
) -> None:
    usual = ["--on", str(questions), "--vectors", str(vectors), "--out", "model"]
    result = run("train", "cosinet", *usual, *options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert not Path("model").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--variant", "rnn"], "relational-cnn has no list layer"),
        (["--channel", "exact"], "--channel is for cosinet"),
    ],
    ids=["variant", "channel"],
)
def test_train_refuses_options_of_another_network(
    run: Run, questions: Path, vectors: Path, options: list[str], message: str
) -> None:
    usual = ["--on", str(questions), "--vectors", str(vectors), "--out", "model"]
    result = run("train", "relational-cnn", *usual, *options)
    assert (result.exit_code, message in result.stderr) == (2, True)
