"""
A trained folder in Hugging Face's manner → the layout and the float tensors of a cascade.

Read are a cascade (`cascade.safetensors` beside the bare encoder) and a plain cross-encoder, which
is a cascade with one classifier, behind its last layer. Only BERT encoders with erf gelu.
"""

from __future__ import annotations

import json
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
from .cascade_config import CascadeLayout, EncoderShape, check_tensors
from .encoder_config import renamed
from .folder import about_pickles

__all__ = [
    "CascadeSource",
]


@dataclass(frozen=True, eq=False)
class CascadeSource:
    """What was trained, in the names of the runtime folder."""

    path: Path
    layout: CascadeLayout
    tensors: Mapping[str, NDArray[np.float32]]
    tokeniser: bytes
    is_cross_encoder: bool

    @classmethod
    def read(cls, path: str | PathLike[str]) -> CascadeSource:
        """Every tensor checked against the config."""
        folder = Path(path).expanduser()
        config = _config(folder)
        tokeniser = folder / "tokenizer.json"
        if not tokeniser.is_file():
            raise ModelError(f"No tokenizer.json in {folder}. Copy the folder again.")
        encoder = _encoder(config, folder)
        found = _weights(folder / "model.safetensors")
        alone = "askline_cascade" not in config
        if alone:
            layout = CascadeLayout(encoder, (encoder.layers,))
            heads = _cross_encoder_head(found, encoder.layers, folder)
        else:
            layout = _layout(encoder, config["askline_cascade"], folder)
            heads = _weights(folder / "cascade.safetensors")
        tensors = renamed(found, encoder.layers) | heads
        check_tensors(layout, tensors, path=folder)
        return cls(folder, layout, tensors, tokeniser.read_bytes(), alone)

    def up_to(self, depth: int) -> CascadeSource:
        """Without the classifiers behind that depth."""
        layout = self.layout.up_to(depth)
        kept = layout.shapes().keys()
        tensors = {name: one for name, one in self.tensors.items() if name in kept}
        return replace(self, layout=layout, tensors=tensors)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not folder.is_dir():
        raise ModelError(f"No model folder at {folder}. Name one that was trained.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"No config.json in {folder}.{about_pickles(folder)}") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a JSON object: {error}") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} must be a JSON object, got {type(config).__name__}.")
    if config.get("kind"):
        raise ModelError(
            f"{folder} must hold what was trained, got a runtime folder: it has been exported."
        )
    wanted = {"model_type": "bert", "hidden_act": "gelu", "type_vocab_size": 2}
    wrong = [
        f"{key} must be {value!r}, got {config.get(key)!r}"
        for key, value in wanted.items()
        if config.get(key) != value
    ]
    if config.get("position_embedding_type", "absolute") != "absolute":
        wrong.append(f"positions must be absolute, got {config['position_embedding_type']!r}")
    if wrong:
        raise ModelError(f"{path} is not of an encoder that can be exported: {'; '.join(wrong)}.")
    return config


def _encoder(config: Mapping[str, Any], folder: Path) -> EncoderShape:
    try:
        return EncoderShape(
            layers=config["num_hidden_layers"],
            width=config["hidden_size"],
            heads=config["num_attention_heads"],
            inner=config["intermediate_size"],
            vocabulary=config["vocab_size"],
            positions=config["max_position_embeddings"],
            norm_epsilon=float(config["layer_norm_eps"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"config.json in {folder} does not describe a BERT: {error!r}.") from error


def _layout(encoder: EncoderShape, entry: Mapping[str, Any], folder: Path) -> CascadeLayout:
    try:
        return CascadeLayout(
            encoder, tuple(entry["depths"]), entry["head"], bool(entry["reader"]), "float32"
        )
    except (KeyError, TypeError) as error:
        raise ModelError(
            f"config.json in {folder} has no sound 'askline_cascade': {error!r}."
        ) from error


def _weights(path: Path) -> dict[str, NDArray[np.float32]]:
    if not path.is_file():
        raise ModelError(f"No {path.name} in {path.parent}.{about_pickles(path.parent)}")
    try:
        found = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged or no safetensors file ({error}).") from error
    return {name: np.asarray(value, np.float32) for name, value in found.items()}


def _cross_encoder_head(
    found: Mapping[str, NDArray[np.float32]], layers: int, folder: Path
) -> dict[str, NDArray[np.float32]]:
    theirs = {"bert.pooler.dense": "dense", "classifier": "out"}
    names = {
        f"{stem}.{kind}": f"classifiers.{layers}.{ours}.{kind}"
        for stem, ours in theirs.items()
        for kind in ("weight", "bias")
    }
    missing = [name for name in names if name not in found]
    if missing:
        raise ModelError(
            f"{folder} must hold a cascade or a cross-encoder; model.safetensors has no "
            f"{', '.join(missing)}."
        )
    return {ours: found[name] for name, ours in names.items()}
