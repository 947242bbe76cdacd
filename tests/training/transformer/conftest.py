"""A tiny BERT with a tokenizer of its own, made here: two files of a few kilobytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askline.types import Candidate, Question, QuestionSet

WORDS = (
    "who wrote emma jane austen is a novel author of the dune frank herbert sand planet what "
    "? . when was born in 1775 1920 paris city france capital where"
).split()


@pytest.fixture(scope="session")
def transformers() -> Any:
    """The library; tests that need a model skip where there is none."""
    return pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="session")
def tokenizer(transformers: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(vocabulary))
    return transformers.BertTokenizerFast.from_pretrained(path.parent, model_max_length=48)


@pytest.fixture
def bert_folder(transformers: Any, tmp_path: Path, tokenizer: Any) -> Path:
    """A sequence classifier of four layers with one output, and its tokenizer."""
    import torch

    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=1,
        hidden_dropout_prob=0.1,
        initializer_range=0.3,  # far enough from 0 for scores that differ
    )
    folder = tmp_path / "bert"
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def questions() -> QuestionSet:
    """Four questions; the last has no answer."""
    rows = [
        (
            "who wrote emma ?",
            ["jane austen wrote emma .", "emma is a novel .", "paris is a city ."],
            0,
        ),
        ("who wrote dune ?", ["dune is a sand planet .", "frank herbert wrote dune ."], 1),
        ("where is paris ?", ["jane austen is a author .", "paris is the capital of france ."], 1),
        ("when was emma born ?", ["emma is a novel of jane austen ."], -1),
    ]
    return QuestionSet(
        "tiny",
        tuple(
            Question(
                f"Q{number}",
                text,
                tuple(
                    Candidate(f"Q{number}-{place}", sentence, place == answer)
                    for place, sentence in enumerate(sentences)
                ),
            )
            for number, (text, sentences, answer) in enumerate(rows)
        ),
    )
