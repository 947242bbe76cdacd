"""
A phrase model's folder: `config.json`, `weights.safetensors`, `tokenizer.json`, `README.md`.

The encoder's tensors are named and kept as a cascade's are, float or int8; its words may be in
4 bits too. Of what stands on it, wide matrices are int8 with one scale a row. What is read is
checked against the sizes in the config, and the config is written last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from ..errors import ModelError
from ..models.encoder_layout import EncoderShape, check_stored, dense_shapes
from ..models.folder import ModelFolder, write_folder
from ..models.nibbles import nibble_shapes
from ..models.quantising import quantise_rows
from .windows import LONGEST

__all__ = ["PhraseConfig", "RuntimeForm", "pack", "read_phrase_folder", "write_phrase_folder"]

KIND = "phrases"
RuntimeForm = Literal["markers", "span"]
Floats = NDArray[np.float32]
Tensors = dict[str, NDArray[Any]]
_KEYS = 128
_HIDDEN = 128


@dataclass(frozen=True, slots=True)
class PhraseConfig:
    """What a model is, apart from its weights."""

    encoder: EncoderShape
    form: RuntimeForm = "markers"
    size: int = 384
    """Numbers of a vector, the extractor's log-probability not counted."""
    words: int = 24
    """Words kept of those around a phrase; 0 for a model without the lexical part."""
    window: int = 384
    overlap: int = 128
    identity: str = ""
    """Drawn from the weights when they are written: vectors of one model fit no other."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every float tensor."""
        return self.encoder.shapes() | self.heads()

    def heads(self) -> dict[str, tuple[int, ...]]:
        """Those of them that stand on the encoder."""
        width = self.encoder.width
        found = {
            **dense_shapes("phrase", self.size, 2 * width),
            **dense_shapes("question", self.size, 2 * width),
            **dense_shapes("trust", 1, width),
            **dense_shapes("spans.start", 1, width),
            **dense_shapes("spans.first", _HIDDEN, width),
            "spans.last.weight": (_HIDDEN, width),
            "spans.length.weight": (LONGEST, _HIDDEN),
            **dense_shapes("spans.join", 1, _HIDDEN),
        }
        if self.words:
            found |= dense_shapes("lexical.seek", _KEYS, 2 * width)
            found |= dense_shapes("lexical.key", _KEYS, width)
            found |= dense_shapes("lexical.own", 1, width)
            found |= dense_shapes("lexical.expand", width, width)
            found |= {"lexical.shift": (1,), "lexical.threshold": (1,)}
        return found


def read_phrase_folder(
    folder: str | PathLike[str],
) -> tuple[PhraseConfig, Tensors, dict[str, Floats]]:
    """The config, the encoder's tensors as they are kept, and the others made real again."""
    opened = ModelFolder.open(folder, kind=KIND)
    config = _config(opened)
    tensors = opened.stored()
    shapes = config.shapes()
    if tensors.get("words.weight", np.zeros(0)).dtype == np.uint8:
        rows, columns = shapes["words.weight"]
        shapes["words.weight"], shapes["words.scale"] = nibble_shapes(rows, columns)
    check_stored(shapes, tensors, layers=config.encoder.layers, path=opened.path)
    heads = {name: tensors.pop(name).astype(np.float32) for name in config.heads()}
    for name in heads:
        scale = tensors.pop(f"{name.removesuffix('.weight')}.scale", None)
        if scale is not None:
            heads[name] *= scale[:, None]
    return config, tensors, heads


def write_phrase_folder(
    folder: str | PathLike[str],
    *,
    config: PhraseConfig,
    tensors: Mapping[str, NDArray[Any]],
    tokeniser: str,
    card: str,
) -> Path:
    """Write a folder that `read_phrase_folder` reads; `tokeniser` is the text of its JSON file."""
    digest = hashlib.sha256(save({**tensors})).hexdigest()[:16]
    return write_folder(
        folder,
        config={**asdict(config), "identity": digest, "kind": KIND},
        tensors=tensors,
        card=card,
        files={"tokenizer.json": tokeniser.encode()},
    )


def pack(tensors: Mapping[str, Floats]) -> Tensors:
    """Matrices as int8 and a step a row, all else as it is."""
    packed: Tensors = {}
    for name, value in tensors.items():
        stem, _, kind = name.rpartition(".")
        if kind == "weight" and value.ndim == 2 and min(value.shape) > 2:
            packed[name], packed[f"{stem}.scale"] = quantise_rows(value)
        else:
            packed[name] = value
    return packed


def _config(folder: ModelFolder) -> PhraseConfig:
    path = folder.path / "config.json"
    given = {one.name: folder.config.get(one.name) for one in fields(PhraseConfig)}
    try:
        shape = EncoderShape.from_entry(folder.config["encoder"])
        config = PhraseConfig(**{**given, "encoder": shape})  # type: ignore[arg-type]
    except (TypeError, KeyError) as error:
        raise ModelError(f"{path} does not describe a model: {error}.") from error
    sizes = [config.size, config.words, config.window, config.overlap]
    whole = all(isinstance(size, int) and size >= 0 for size in sizes)
    if config.form not in get_args(RuntimeForm) or not whole or list(shape.problems()):
        raise ModelError(f"{path} must hold sizes and a form, got {given}.")
    return config
