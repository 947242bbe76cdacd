"""An exported network beside torch: the same tokens, the same scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from ..engine.pair_windows import Windows
from ..engine.tokenizer import WordPiece
from ..errors import ModelError
from ..models.huggingface import CascadeSource
from .observing import Pair
from .transformer.network import transformers

__all__ = ["Agreement", "agreement", "check_tokens", "torch_scores"]

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far scores are from torch's, over all depths."""

    largest: float
    correlation: float
    """At full depth."""


def agreement(found: FloatArray, wanted: FloatArray) -> Agreement:
    """Both are (depths, pairs)."""
    largest = float(np.abs(found - wanted).max())
    same = len(found[-1]) < 2 or np.ptp(wanted[-1]) == 0
    return Agreement(largest, 1.0 if same else float(np.corrcoef(found[-1], wanted[-1])[0, 1]))


def check_tokens(source: CascadeSource, tokeniser: WordPiece, pairs: Sequence[Pair]) -> None:
    """Refuse a tokeniser that askline would read otherwise than it was trained."""
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_str(source.tokeniser.decode())
    theirs.no_truncation()
    theirs.no_padding()
    for text in (text for pair in pairs for text in pair):
        found, wanted = tokeniser.numbers(text), theirs.encode(text, add_special_tokens=False).ids
        if found != wanted:
            raise ModelError(f"{source.path}: {text!r} must be the tokens {wanted}, got {found}.")


@torch.inference_mode()
def torch_scores(source: CascadeSource, tokeniser: WordPiece, pairs: Sequence[Pair]) -> FloatArray:
    """(depths, pairs) logits by transformers' own BERT; of a long candidate its first window."""
    encoder = _bert(source)
    scores = np.empty((len(source.layout.depths), len(pairs)), np.float32)
    for at, (question, candidate) in enumerate(pairs):
        positions = source.layout.encoder.positions
        windows = Windows.of(tokeniser, question, [candidate], positions=positions)
        numbers, kinds = (torch.from_numpy(one) for one in windows.batch(np.zeros(1, np.int64)))
        states = encoder(
            input_ids=numbers, token_type_ids=kinds, output_hidden_states=True
        ).hidden_states
        for row, depth in enumerate(source.layout.depths):
            scores[row, at] = _classified(source, depth, states[depth][0])
    return scores


def _bert(source: CascadeSource) -> Any:
    library = transformers()
    config = library.BertConfig.from_pretrained(source.path)
    encoder = library.BertModel(config, add_pooling_layer=False).eval()
    found = load_file(source.path / "model.safetensors")
    stripped = {name.removeprefix("bert."): value.float() for name, value in found.items()}
    missing = encoder.load_state_dict(stripped, strict=False).missing_keys
    if missing:
        raise ModelError(f"model.safetensors in {source.path} has no {', '.join(missing)}.")
    return encoder


def _classified(source: CascadeSource, depth: int, states: torch.Tensor) -> float:
    """(tokens, width) → a logit"""
    pooled = states[0] if source.layout.reads(depth) == "first" else states.mean(dim=0)
    for name in source.layout.hidden(depth):
        pooled = torch.tanh(_dense(source, name, pooled))
    return float(_dense(source, f"classifiers.{depth}.out", pooled))


def _dense(source: CascadeSource, name: str, inputs: torch.Tensor) -> torch.Tensor:
    weight, bias = (
        torch.from_numpy(source.tensors[f"{name}.{kind}"]) for kind in ("weight", "bias")
    )
    return torch.nn.functional.linear(inputs, weight, bias)
