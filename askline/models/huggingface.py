"""
Import trained BERT checkpoints in Hugging Face's format as cascades.

A checkpoint is either a cascade (`cascade.safetensors` beside the bare encoder) or a plain
cross-encoder, which becomes a cascade with a single classifier after its last layer. Only BERT
encoders with the exact (erf) GELU are supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ..errors import ModelError
from .cascade_config import CascadeConfig, check_cascade_tensors
from .encoder_config import EncoderConfig
from .folder import pickle_hint, read_config

__all__ = [
    "CascadeCheckpoint",
    "from_huggingface_names",
]

# Hugging Face's names of tensors -> the names in a model folder.
_EMBEDDING_NAMES = {
    "word_embeddings": "words",
    "position_embeddings": "positions",
    "token_type_embeddings": "kinds",
    "LayerNorm": "norm",
}
_LAYER_NAMES = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "attended",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "inner",
    "output.dense": "outer",
    "output.LayerNorm": "output_norm",
}
_REQUIRED_CONFIG = {"model_type": "bert", "hidden_act": "gelu", "type_vocab_size": 2}


@dataclass(frozen=True, eq=False)
class CascadeCheckpoint:
    """A trained checkpoint, with the tensor names of a model folder."""

    path: Path
    config: CascadeConfig
    tensors: Mapping[str, NDArray[np.float32]]
    tokenizer: bytes
    """The content of `tokenizer.json`."""

    @classmethod
    def read(cls, path: str | PathLike[str]) -> CascadeCheckpoint:
        """Read a checkpoint folder and check every tensor against the config."""
        folder = Path(path).expanduser()
        entries = _read_config(folder)
        tokenizer = folder / "tokenizer.json"
        if not tokenizer.is_file():
            raise ModelError(f"No tokenizer.json in {folder}. Copy the folder again.")
        encoder = _encoder_config(entries, folder)
        weights = _read_tensors(folder / "model.safetensors")
        if "askline_cascade" not in entries:
            config = CascadeConfig(encoder, (encoder.layers,))
            heads = _cross_encoder_head(weights, encoder.layers, folder)
        else:
            config = _cascade_config(encoder, entries["askline_cascade"], folder)
            heads = _read_tensors(folder / "cascade.safetensors")
        tensors = from_huggingface_names(weights, encoder.layers) | heads
        check_cascade_tensors(config, tensors, path=folder)
        return cls(folder, config, tensors, tokenizer.read_bytes())

    def up_to(self, depth: int) -> CascadeCheckpoint:
        """The checkpoint without the classifiers after that depth."""
        config = self.config.up_to(depth)
        kept = config.shapes().keys()
        tensors = {name: tensor for name, tensor in self.tensors.items() if name in kept}
        return replace(self, config=config, tensors=tensors)


def from_huggingface_names(
    tensors: Mapping[str, NDArray[np.float32]], layers: int
) -> dict[str, NDArray[np.float32]]:
    """Rename the encoder's tensors as a model folder names them; drop all other tensors."""
    names = {f"embeddings.{theirs}": ours for theirs, ours in _EMBEDDING_NAMES.items()} | {
        f"encoder.layer.{layer}.{theirs}": f"layers.{layer}.{ours}"
        for layer in range(layers)
        for theirs, ours in _LAYER_NAMES.items()
    }
    renamed: dict[str, NDArray[np.float32]] = {}
    for name, tensor in tensors.items():
        stem, _, kind = name.removeprefix("bert.").rpartition(".")
        if stem in names:
            renamed[f"{names[stem]}.{kind}"] = tensor
    return renamed


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelError(f"No model folder at {folder}. Name the folder of a trained model.")
    path = folder / "config.json"
    entries = read_config(path)
    if entries.get("kind"):
        raise ModelError(
            f"{folder} must hold a trained checkpoint, got a model folder: it has been exported "
            "already."
        )
    problems = [
        f"{key} must be {value!r}, got {entries.get(key)!r}"
        for key, value in _REQUIRED_CONFIG.items()
        if entries.get(key) != value
    ]
    if entries.get("position_embedding_type", "absolute") != "absolute":
        problems.append(f"positions must be absolute, got {entries['position_embedding_type']!r}")
    if problems:
        raise ModelError(
            f"{path} describes an encoder that cannot be exported: {'; '.join(problems)}."
        )
    return entries


def _encoder_config(entries: Mapping[str, Any], folder: Path) -> EncoderConfig:
    try:
        return EncoderConfig(
            layers=entries["num_hidden_layers"],
            width=entries["hidden_size"],
            heads=entries["num_attention_heads"],
            inner=entries["intermediate_size"],
            vocabulary=entries["vocab_size"],
            positions=entries["max_position_embeddings"],
            norm_epsilon=float(entries["layer_norm_eps"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"config.json in {folder} does not describe a BERT: {error!r}.") from error


def _cascade_config(
    encoder: EncoderConfig, entry: Mapping[str, Any], folder: Path
) -> CascadeConfig:
    try:
        return CascadeConfig(
            encoder, tuple(entry["depths"]), entry["head"], bool(entry["reader"]), "float32"
        )
    except (KeyError, TypeError) as error:
        raise ModelError(
            f"config.json in {folder} has no valid 'askline_cascade': {error!r}."
        ) from error


def _read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    if not path.is_file():
        raise ModelError(f"No {path.name} in {path.parent}.{pickle_hint(path.parent)}")
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path} is not a valid safetensors file ({error}).") from error
    return {name: np.asarray(value, np.float32) for name, value in tensors.items()}


def _cross_encoder_head(
    tensors: Mapping[str, NDArray[np.float32]], layers: int, folder: Path
) -> dict[str, NDArray[np.float32]]:
    stems = {"bert.pooler.dense": "dense", "classifier": "out"}
    names = {
        f"{theirs}.{kind}": f"classifiers.{layers}.{ours}.{kind}"
        for theirs, ours in stems.items()
        for kind in ("weight", "bias")
    }
    missing = [name for name in names if name not in tensors]
    if missing:
        raise ModelError(
            f"{folder} must hold a cascade or a cross-encoder; model.safetensors has no "
            f"{', '.join(missing)}."
        )
    return {ours: tensors[theirs] for theirs, ours in names.items()}
