"""Tiny cascades with random weights, as folders, and their outputs computed in numpy."""

from __future__ import annotations

import json
import math
import string
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.models.cascade_config import CascadeConfig, Head
from askline.models.encoder_config import EncoderConfig
from askline.models.folder import ModelFolder, write_folder

FloatArray = NDArray[np.float32]

QUESTION = "Who wrote Emma?"
CANDIDATES = [
    "Jane Austen wrote Emma.",
    "Emma is a novel about a young woman who likes to make matches.",
    "It appeared in 1815.",
    "",
    "東京 – naïve, ZÜRICH!",
    "She wrote it in Chawton, where she lived with her mother and her sister Cassandra.",
    "No.",
    "Emma was her fourth novel, and the last one that she saw in print.",
]
_WORDS = ["who", "wrote", "emma", "jane", "novel", "she", "it", "##en", "##ed", "the"]
_MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_LETTERS = [*string.ascii_lowercase, *string.digits]
VOCABULARY = [*_MARKS, *_LETTERS, *("##" + one for one in _LETTERS), *string.punctuation, *_WORDS]


def tiny_config(head: Head = "first", *, reader: bool = True, positions: int = 64) -> CascadeConfig:
    shape = EncoderConfig(
        layers=3, width=32, heads=4, inner=64, vocabulary=len(VOCABULARY), positions=positions
    )
    return CascadeConfig(shape, (1, 3), head, reader)


def tensors(of: CascadeConfig, *, seed: int = 0) -> dict[str, FloatArray]:
    """Random weights, large enough that the states of different tokens stay different."""
    random = np.random.default_rng(seed)
    return {
        name: (
            random.standard_normal(shape) * (0.2 if len(shape) > 1 else 0.1)
            + (1.0 if "norm.weight" in name else 0.0)
        ).astype(np.float32)
        for name, shape in of.shapes().items()
    }


def tokenizer_entries(*, lower: bool = True) -> dict[str, Any]:
    return {
        "version": "1.0",
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": lower,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: number for number, piece in enumerate(VOCABULARY)},
        },
    }


def runtime_folder(path: Path, of: CascadeConfig, weights: dict[str, Any]) -> Path:
    return write_folder(
        path,
        config=of.to_config(),
        tensors=weights,
        card="# tiny\n",
        files={"tokenizer.json": json.dumps(tokenizer_entries()).encode()},
    )


def encoder(path: Path, of: CascadeConfig, *, threads: int = 2, seed: int = 0) -> OnnxEncoder:
    folder = runtime_folder(path, of, tensors(of, seed=seed))
    return load_encoder(ModelFolder.open(folder, kind="cascade"), threads=threads)


def trained_folder(path: Path, of: CascadeConfig, *, seed: int = 0) -> Path:
    """A checkpoint folder as training writes it."""
    weights = tensors(of, seed=seed)
    path.mkdir()
    own = of.encoder
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "hidden_act": "gelu",
        "hidden_size": own.width,
        "num_hidden_layers": own.layers,
        "num_attention_heads": own.heads,
        "intermediate_size": own.inner,
        "vocab_size": own.vocabulary,
        "max_position_embeddings": own.positions,
        "type_vocab_size": 2,
        "layer_norm_eps": own.norm_epsilon,
        "askline_cascade": {"depths": list(of.depths), "head": of.head, "reader": of.reader},
    }
    heads = {name: one for name, one in weights.items() if name.startswith(("class", "reader"))}
    body = {_theirs(name): one for name, one in weights.items() if name not in heads}
    save_file(body, path / "model.safetensors")
    save_file(heads, path / "cascade.safetensors")
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (path / "tokenizer.json").write_text(json.dumps(tokenizer_entries()), encoding="utf-8")
    return path


def cross_encoder_folder(path: Path, of: CascadeConfig, *, seed: int = 0) -> Path:
    """The network with its last classifier only, as sentence-transformers saves it."""
    trained_folder(path, of, seed=seed)
    weights = tensors(of, seed=seed)
    stem = f"classifiers.{of.depths[-1]}"
    found = {
        f"bert.{_theirs(name)}": one
        for name, one in weights.items()
        if not name.startswith(("class", "reader"))
    }
    for kind in ("weight", "bias"):
        found[f"bert.pooler.dense.{kind}"] = weights[f"{stem}.dense.{kind}"]
        found[f"classifier.{kind}"] = weights[f"{stem}.out.{kind}"]
    save_file(found, path / "model.safetensors")
    (path / "cascade.safetensors").unlink()
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    del config["askline_cascade"]
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


def logits(
    of: CascadeConfig, weights: dict[str, FloatArray], tokens: list[int], kinds: list[int]
) -> dict[int, float]:
    """The logits of every classifier for one pair, step by step."""
    states = weights["words.weight"][tokens] + weights["positions.weight"][: len(tokens)]
    states = _norm(states + weights["kinds.weight"][kinds], weights, "norm")
    found = {}
    for layer in range(of.encoder.layers):
        states = _layer(of, weights, f"layers.{layer}", states)
        if layer + 1 in of.depths:
            pooled = states[0] if of.pooling(layer + 1) == "first" else states.mean(axis=0)
            for name in of.classifier_layers(layer + 1):
                pooled = np.tanh(_dense(weights, name, pooled))
            found[layer + 1] = float(_dense(weights, f"classifiers.{layer + 1}.out", pooled)[0])
    return found


def _layer(
    of: CascadeConfig, weights: dict[str, FloatArray], stem: str, states: FloatArray
) -> FloatArray:
    heads, width = of.encoder.heads, of.encoder.width // of.encoder.heads
    query, key, value = (
        _dense(weights, f"{stem}.{name}", states).reshape(-1, heads, width).transpose(1, 0, 2)
        for name in ("query", "key", "value")
    )
    scores = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(width))
    shares = scores / scores.sum(axis=-1, keepdims=True)
    context = (shares @ value).transpose(1, 0, 2).reshape(len(states), -1)
    attended = _dense(weights, f"{stem}.attended", context)
    states = _norm(states + attended, weights, f"{stem}.attention_norm")
    inner = _dense(weights, f"{stem}.inner", states)
    bent = np.vectorize(math.erf)(inner / math.sqrt(2)).astype(np.float32)
    outer = _dense(weights, f"{stem}.outer", inner * (1 + bent) / 2)
    return _norm(states + outer, weights, f"{stem}.output_norm")


def _dense(weights: dict[str, FloatArray], name: str, inputs: FloatArray) -> FloatArray:
    return np.asarray(inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"], np.float32)


def _norm(states: FloatArray, weights: dict[str, FloatArray], name: str) -> FloatArray:
    centred = states - states.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-12)
    return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"], np.float32)


def _theirs(name: str) -> str:
    """A tensor name of a model folder → Hugging Face's name."""
    swaps = {
        "words": "embeddings.word_embeddings",
        "positions": "embeddings.position_embeddings",
        "kinds": "embeddings.token_type_embeddings",
        "norm": "embeddings.LayerNorm",
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "attended": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "inner": "intermediate.dense",
        "outer": "output.dense",
        "output_norm": "output.LayerNorm",
    }
    *before, part, kind = name.split(".")
    stem = f"encoder.layer.{before[1]}." if before else ""
    return f"{stem}{swaps[part]}.{kind}"
