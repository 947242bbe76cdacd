"""Tiny cascades with a context: random weights, passages, and the network in torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.engine.tokenizer import WordPiece
from askline.models.cascade_config import Adapter, CascadeConfig, ContextConfig
from askline.models.folder import ModelFolder
from askline.training.cascade.context_export import write_context
from askline.training.post_training_quantization import quantize_cascade
from askline.types import Passage

from .tiny_cascades import CANDIDATES, QUESTION, runtime_folder, tensors, tiny_config

MARKER = 4  # [MASK]
PASSAGES = [
    Passage(["Jane Austen wrote Emma.", "It appeared in 1815.", "She wrote it in Chawton."]),
    Passage(["No."], title="Novels"),
    Passage(["It is a novel.", "", "東京 – naïve, ZÜRICH!", "She saw it."], title="Emma · Print"),
    Passage([" ".join(["She wrote novel after novel,"] * 9), "The end."], title="Who"),
    Passage([f"Novel {number} was her {number} novel." for number in range(12)], title="List"),
    Passage(["Jane Austen wrote Emma.", "It appeared in 1816.", "She wrote it in Chawton."]),
]


def context_config(first: int = 0, *, depths: tuple[int, ...] = (1, 2, 3)) -> CascadeConfig:
    """In float32, with windows of 64 tokens."""
    return replace(
        tiny_config("mean", positions=96),
        adapter=Adapter(first, 4),
        context=ContextConfig(depths, marker=MARKER, max_length=64, max_title=12),
    )


def context_encoder(
    path: Path, config: CascadeConfig | None = None, *, threads: int = 2
) -> OnnxEncoder:
    of = config or context_config()
    folder = runtime_folder(path, of, tensors(of))
    return load_encoder(ModelFolder.open(folder, kind="cascade"), threads=threads)


def int8_folder(path: Path, config: CascadeConfig) -> Path:
    """The same weights in int8, as training writes them."""
    weights, of = tensors(config), config
    own = {name: one for name, one in weights.items() if name.startswith(_OWN)}
    plain = replace(of, reader=False, adapter=None, context=None)
    base: dict[str, Any] = {name: weights[name] for name in plain.shapes()}
    float_folder = runtime_folder(path / "float", plain, base)
    tokenizer = WordPiece.load(float_folder / "tokenizer.json")
    pairs = [(QUESTION, text) for text in CANDIDATES]
    small, stored = quantize_cascade(plain, base, tokenizer, pairs)
    start = ModelFolder.open(runtime_folder(path / "start", small, stored), kind="cascade")
    assert of.context is not None
    assert of.adapter is not None
    windows = [(QUESTION, passage) for passage in PASSAGES]
    return write_context(
        start, own, of.context, of.adapter, path / "int8", windows=windows, card="# tiny\n"
    )


def reference(
    config: CascadeConfig, weights: dict[str, Any], token_ids: list[int], second: int
) -> tuple[dict[int, torch.Tensor], torch.Tensor]:
    """The states (tokens, hidden) after every layer, and the span logits, for one window."""
    own = {name: torch.from_numpy(one) for name, one in weights.items()}
    length, encoder = len(token_ids), config.encoder

    def norm(name: str, states: torch.Tensor) -> torch.Tensor:
        shape = (encoder.width,)
        return F.layer_norm(states, shape, own[f"{name}.weight"], own[f"{name}.bias"], 1e-12)

    def get(name: str) -> torch.Tensor:
        return own.get(f"adapter.{name}", own.get(name, torch.zeros(())))

    def dense(name: str, inputs: torch.Tensor) -> torch.Tensor:
        weight = own[f"{name}.weight"]
        if f"adapter.{name}.up.weight" in own:
            up, down = (own[f"adapter.{name}.{side}.weight"] for side in ("up", "down"))
            weight = weight + up.T @ down
        return F.linear(inputs, weight, get(f"{name}.bias"))

    def adapted_norm(name: str, states: torch.Tensor) -> torch.Tensor:
        shape = (encoder.width,)
        return F.layer_norm(states, shape, get(f"{name}.weight"), get(f"{name}.bias"), 1e-12)

    types = (torch.arange(length) >= second).long()
    states = own["words.weight"][token_ids] + own["positions.weight"][:length]
    states = norm("norm", states + own["kinds.weight"][types])
    found = {}
    for layer in range(encoder.layers):
        stem = f"layers.{layer}"
        query, key, value = (
            dense(f"{stem}.{name}", states).reshape(length, encoder.heads, -1).transpose(0, 1)
            for name in ("query", "key", "value")
        )
        context = F.scaled_dot_product_attention(query[None], key[None], value[None])[0]
        attended = dense(f"{stem}.attended", context.transpose(0, 1).reshape(length, -1))
        states = adapted_norm(f"{stem}.attention_norm", states + attended)
        inner = F.gelu(dense(f"{stem}.inner", states))
        states = adapted_norm(f"{stem}.output_norm", states + dense(f"{stem}.outer", inner))
        found[layer + 1] = states
    return found, F.linear(states, own["reader.weight"], own["reader.bias"])


def reference_logit(weights: dict[str, Any], depth: int, states: torch.Tensor) -> float:
    """The logit of a sentence from the states of its marker and tokens."""
    own = {name: torch.from_numpy(one) for name, one in weights.items()}
    stem = f"context.{depth}"
    hidden = torch.tanh(
        F.linear(states.mean(dim=0), own[f"{stem}.dense.weight"], own[f"{stem}.dense.bias"])
    )
    return float(F.linear(hidden, own[f"{stem}.out.weight"], own[f"{stem}.out.bias"]))


def everyone(passages: list[Passage]) -> Any:
    return np.arange(len(passages))


_OWN = ("adapter.", "reader.", "context.")
