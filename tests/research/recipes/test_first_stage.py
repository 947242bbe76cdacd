from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from askline.rankers.cosinet import Cosinet

pytest.importorskip("torch")

from research.recipes.first_stage import main


def test_the_recipe_runs_from_data_folder_to_model_folder(tmp_path: Path) -> None:
    text = "The tower was lit in 1698. The sea took it."
    asked = {"question": "When was the tower lit?", "id": "1"}
    spans = {"answers": [{"text": "1698", "answer_start": text.index("1698")}]}
    shifts = {"data": [{"title": "T", "paragraphs": [{"context": text, "qas": [asked | spans]}]}]}
    for name in ("new_wiki", "reddit", "amazon_reviews"):
        changed = json.dumps(shifts).replace('"id": "1"', f'"id": "{name}"')
        _write(tmp_path / f"squadshifts/{name}_v1.0.json", changed)
    lone = {"question": asked["question"], "answer": "1698"}
    _write(
        tmp_path / "squad/train-800-contexts.json", json.dumps([{"context": text, "qas": [lone]}])
    )
    pairs = [
        {"question": f"Who kept lamp {n}?", "sentence": f"Ann kept lamp {n}."} for n in range(4)
    ]
    _write(tmp_path / "squad/train-pairs.jsonl", "\n".join(map(json.dumps, pairs)))
    arguments = ["--data", str(tmp_path), "--out", str(tmp_path / "model")]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    ranker = Cosinet.load(tmp_path / "model")
    assert len(ranker.rank("When was it lit?", ["In 1698.", "The sea."])) == 2
    assert "Trained on 6 questions" in (tmp_path / "model/README.md").read_text("utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
