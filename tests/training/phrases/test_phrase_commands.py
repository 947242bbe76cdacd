from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from askline.cli.train_phrases import extractor, phrases
from askline.data.squad import Paragraph
from askline.phrases.model import PhraseModel


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


def test_an_extractor_then_a_phrase_model(tmp_path: Path, squad: Path, bert_folder: Path) -> None:
    common = ["--on", "squad.json", "--data", squad, "--dev", squad / "squad.json"]
    common += ["--epochs", 1, "--window", 128]
    done = _run(extractor, "--init", bert_folder, "--out", tmp_path / "extractor", *common)
    assert done.exit_code == 0, done.output
    assert "EM" in done.stdout
    assert "Trained on: squad.json" in (tmp_path / "extractor" / "README.md").read_text()
    taught = ["--teacher", bert_folder, "--pairs", "pairs.jsonl", "--word-bits", 4]
    done = _run(
        phrases, "--extractor", tmp_path / "extractor", "--out", tmp_path / "m", *taught, *common
    )
    assert done.exit_code == 0, done.output
    assert "F1" in done.stdout
    model = PhraseModel.load(tmp_path / "m")
    assert model.extract("Jane Austen wrote Emma.", limit=3)


def test_french_goes_the_same_way(tmp_path: Path, bert_folder: Path) -> None:
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


def test_pairs_want_a_teacher(tmp_path: Path, squad: Path, bert_folder: Path) -> None:
    done = _run(
        phrases,
        *("--extractor", bert_folder, "--pairs", "pairs.jsonl", "--on", "squad.json"),
        *("--data", squad, "--out", tmp_path / "m"),
    )
    assert done.exit_code != 0
    assert "--pairs needs --teacher" in str(done.exception)
