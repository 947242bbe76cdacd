"""The tiny BERT of the transformer tests, a cascade on it, and a file of paragraphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askline.training.cascade.cascade_network import CascadeNetwork, CascadeShape

from ..transformer.conftest import bert_folder, questions, tokenizer, transformers

__all__ = ["bert_folder", "questions", "tokenizer", "transformers"]

PARAGRAPHS = [
    (
        "Emma",
        "Emma is a novel of Jane Austen. Jane Austen was born in 1775.",
        [("who is the author of emma ?", "Jane Austen"), ("when was jane austen born ?", "1775")],
    ),
    (
        "Emma",
        "Paris is a city in France. Paris is the capital of France.",
        [("where is paris ?", "in France")],
    ),
    (
        "Dune",
        "Dune is a novel of Frank Herbert. Frank Herbert was born in 1920.",
        [("when was frank herbert born ?", "1920")],
    ),
]


@pytest.fixture
def network(bert_folder: Path) -> CascadeNetwork:
    import torch

    torch.manual_seed(5)
    return CascadeNetwork.start(bert_folder, CascadeShape((1, 2, 4))).eval()


@pytest.fixture
def squad_file(tmp_path: Path) -> Path:
    articles: dict[str, Any] = {}
    for number, (title, context, asked) in enumerate(PARAGRAPHS):
        qas = [
            {
                "id": f"{number}-{place}",
                "question": question,
                "answers": [{"text": answer, "answer_start": context.index(answer)}],
            }
            for place, (question, answer) in enumerate(asked)
        ]
        article = articles.setdefault(title, {"title": title, "paragraphs": []})
        article["paragraphs"].append({"context": context, "qas": qas})
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": list(articles.values())}))
    return path
