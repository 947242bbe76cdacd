"""The tiny BERT of the transformer tests and a cascade on it."""

from __future__ import annotations

from ...training.cascade.conftest import bert_folder, network, questions, tokenizer, transformers

__all__ = ["bert_folder", "network", "questions", "tokenizer", "transformers"]
