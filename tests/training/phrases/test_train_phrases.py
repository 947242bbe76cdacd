from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from askline.cli.train_phrases import extractor, phrases
from askline.data.squad import Paragraph
from askline.errors import AsklineError, DataError
from askline.phrases.phrase_model import PhraseModel


@pytest.fixture(scope="module")
def squad(tmp_path_factory: pytest.TempPathFactory, paragraphs: list[Paragraph]) -> Path:
    root = tmp_path_factory.mktemp("data")
    rows = [
        {
            "context": one.text,
            "qas": [{"question": q.text, "answer": q.answers[0].text} for q in one.questions],
        }
        for one in paragraphs
    ]
    (root / "squad.json").write_text(json.dumps(rows))
    pair = {"question": "who wrote emma ?", "sentence": "Jane Austen wrote Emma."}
    (root / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    return root


def _run(command: Any, *arguments: object) -> Any:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.mark.slow
def test_an_extractor_then_a_phrase_model(tmp_path: Path, squad: Path, bert_folder: Path) -> None:
    common = ["--on", "squad.json", "--data", squad, "--dev", squad / "squad.json"]
    common += ["--epochs", 1, "--window", 128]
    done = _run(extractor, "--init", bert_folder, "--out", tmp_path / "extractor", *common)
    assert done.exit_code == 0, done.output
    assert "EM" in done.stdout
    assert "extractor  step 1 of 1\nextractor  epoch 1  loss " in done.stderr
    assert "Trained on: squad.json" in (tmp_path / "extractor" / "README.md").read_text()
    taught = ["--teacher", bert_folder, "--pairs", "pairs.jsonl", "--word-bits", 4]
    done = _run(
        phrases, "--extractor", tmp_path / "extractor", "--out", tmp_path / "m", *taught, *common
    )
    assert done.exit_code == 0, done.output
    assert "F1" in done.stdout
    for what in ("teacher 1", "teacher 2", "phrases"):
        assert f"{what}  step 1 of 1\n" in done.stderr
    model = PhraseModel.load(tmp_path / "m")
    assert model.extract("Jane Austen wrote Emma.", limit=3)


def test_french_paragraphs_are_supported(tmp_path: Path, bert_folder: Path) -> None:
    article = {
        "title": "Paris",
        "paragraphs": [
            {
                "context": "L’été, Paris est une ville d'Émma.",
                "qas": [
                    {
                        "id": "1",
                        "question": "Où est la ville ?",
                        "answers": [{"text": "Émma", "answer_start": 29}],
                    }
                ],
            }
        ],
    }
    (tmp_path / "fr.json").write_text(json.dumps({"data": [article]}), encoding="utf-8")
    common = ["--on", tmp_path / "fr.json", "--dev", tmp_path / "fr.json", "--language", "fr"]
    common += ["--init", bert_folder, "--epochs", 1, "--window", 128]
    done = _run(extractor, "--out", tmp_path / "extractor", *common)
    assert done.exit_code == 0, done.output
    assert "EM 100.00" in done.stdout


def test_pairs_need_a_teacher(tmp_path: Path, squad: Path, bert_folder: Path) -> None:
    done = _run(
        phrases,
        *("--extractor", bert_folder, "--pairs", "pairs.jsonl", "--on", "squad.json"),
        *("--data", squad, "--out", tmp_path / "m"),
    )
    assert done.exit_code != 0
    assert "--pairs needs --teacher" in str(done.exception)


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "pairs.jsonl:2"), ('{"question": "who ?"}', "sentence")],
    ids=["no JSON", "half a pair"],
)
def test_bad_pairs_are_named(tmp_path: Path, squad: Path, line: str, message: str) -> None:
    good = (squad / "pairs.jsonl").read_text()
    (tmp_path / "pairs.jsonl").write_text(good + line + "\n")
    done = _run(
        phrases,
        *("--extractor", tmp_path, "--teacher", "x", "--pairs", tmp_path / "pairs.jsonl"),
        *("--on", squad / "squad.json", "--out", tmp_path / "m"),
    )
    assert isinstance(done.exception, DataError)
    assert message in str(done.exception)


@pytest.fixture
def trained(tmp_path: Path, squad: Path, bert_folder: Path) -> list[object]:
    """The options of `train phrases` behind an extractor that is there."""
    common = ["--on", squad / "squad.json", "--epochs", 1, "--window", 128]
    done = _run(extractor, "--init", bert_folder, "--out", tmp_path / "extractor", *common)
    assert done.exit_code == 0, done.output
    return ["--extractor", tmp_path / "extractor", "--out", tmp_path / "m", *common]


def _refused(trained: list[object], *options: object) -> str:
    done = _run(phrases, *trained, *options)
    assert isinstance(done.exception, AsklineError)
    assert "epoch" not in done.output  # before anything was trained
    return str(done.exception)


def test_unsupported_encoders_are_refused_before_training(
    tmp_path: Path, trained: list[object], bert_folder: Path
) -> None:
    transformers: Any = pytest.importorskip("transformers")
    small = {"dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 64}
    config = transformers.DistilBertConfig(vocab_size=200, **small)
    transformers.DistilBertModel(config).save_pretrained(tmp_path / "distil")
    told = _refused(trained, "--init", tmp_path / "distil")
    assert "got DistilBertModel: its config has no" in told
    config = transformers.AutoConfig.from_pretrained(bert_folder, hidden_act="relu")
    transformers.BertModel(config).save_pretrained(tmp_path / "relu")
    assert "its hidden_act is 'relu'" in _refused(trained, "--init", tmp_path / "relu")
    config = transformers.ElectraConfig(hidden_size=32, embedding_size=16, num_hidden_layers=1)
    transformers.ElectraModel(config).save_pretrained(tmp_path / "narrow")
    assert "it has no words.weight" in _refused(trained, "--init", tmp_path / "narrow")


def test_an_encoder_with_other_words_is_refused(
    tmp_path: Path, trained: list[object], bert_folder: Path
) -> None:
    shutil.copytree(bert_folder, tmp_path / "other")
    entries = json.loads((bert_folder / "tokenizer.json").read_text())
    entries["model"]["vocab"]["zebra"] = len(entries["model"]["vocab"])
    (tmp_path / "other" / "tokenizer.json").write_text(json.dumps(entries))
    told = _refused(trained, "--init", tmp_path / "other")
    assert "must have the vocabulary of the extractor's tokenizer" in told


def test_a_window_longer_than_the_encoder_reads_is_refused(
    tmp_path: Path, squad: Path, bert_folder: Path
) -> None:
    given = ("--on", squad / "squad.json", "--out", tmp_path / "x", "--window", 256)
    done = _run(extractor, "--init", bert_folder, *given)
    assert "reads 128 tokens at a time, got a window of 256" in str(done.exception)
