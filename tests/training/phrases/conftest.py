"""A tiny BERT, and paragraphs whose answers it can learn by heart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

from askline.data.squad import AnswerSpan, Paragraph, SpanQuestion

from ...phrases.models import make_tokenizer

ROWS = [
    (
        "Jane Austen wrote Emma. Emma is a novel.",
        [("who wrote emma ?", "Jane Austen"), ("what is emma ?", "a novel")],
    ),
    ("Frank Herbert wrote Dune.", [("who wrote dune ?", "Frank Herbert")]),
    ("Paris is the capital of France.", [("what is the capital of france ?", "Paris")]),
    ("Jane Austen was born in 1775.", [("when was jane austen born ?", "1775")]),
]


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return make_tokenizer()


@pytest.fixture(scope="session")
def paragraphs() -> list[Paragraph]:
    return [
        Paragraph(
            f"P{at}",
            "",
            text,
            tuple(
                SpanQuestion(
                    f"P{at}-{number}",
                    question,
                    (AnswerSpan(answer, text.index(answer), text.index(answer) + len(answer)),),
                )
                for number, (question, answer) in enumerate(asked)
            ),
        )
        for at, (text, asked) in enumerate(ROWS)
    ]


@pytest.fixture(scope="session")
def bert_folder(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    transformers: Any = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,
    )
    folder = tmp_path_factory.mktemp("bert")
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def roberta() -> Any:
    """An encoder of one token type that counts positions from behind its padding."""
    import torch

    transformers: Any = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.RobertaConfig(
        vocab_size=120,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=130,
        type_vocab_size=1,
        pad_token_id=1,
    )
    return transformers.RobertaModel(config, add_pooling_layer=False).eval()
