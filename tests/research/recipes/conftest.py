"""The small BERT of the transformer tests, and a data folder with a few lines of each set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ...training.transformer.conftest import bert_folder, tokenizer, transformers

__all__ = [
    "bert_folder",
    "data_folder",
    "tokenizer",
    "transformers",
]


def _article(title: str, context: str, question: str, answer: str) -> dict[str, Any]:
    span = {"text": answer, "answer_start": context.index(answer)}
    asked = {"id": f"{title}-1", "question": question, "answers": [span]}
    return {"title": title, "paragraphs": [{"context": context, "qas": [asked]}]}


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """Two articles of each kind, so that one is left when the other is held out."""
    folder = tmp_path / "data"
    files: dict[str, Any] = {
        "squadshifts/new_wiki_v1.0.json": [
            _article("Emma", "Jane wrote Emma. Emma is a novel.", "who wrote emma ?", "Jane"),
            _article("Dune", "Frank wrote Dune. Dune is a planet.", "who wrote dune ?", "Frank"),
        ],
        "squadshifts/reddit_v1.0.json": [
            _article("Filtered Reddit Comments", "Paris is a city in France.", "where ?", "Paris"),
        ],
        "squadshifts/amazon_reviews_v1.0.json": [
            _article("Amazon_Reviews_1", "The author is in a city. So.", "who ?", "author"),
        ],
    }
    for name, articles in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"data": articles}))
    squad = folder / "squad"
    squad.mkdir()
    context = "France is a city of Paris. The capital was born in 1920."
    qas = [{"question": "what is france ?", "answer": "city"}]
    (squad / "train-800-contexts.json").write_text(json.dumps([{"context": context, "qas": qas}]))
    pair = {"question": "when was austen born ?", "sentence": "Jane Austen was born in 1775 ."}
    (squad / "train-pairs.jsonl").write_text(json.dumps(pair) + "\n")
    return folder
