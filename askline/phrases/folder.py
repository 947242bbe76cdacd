"""
A phrase model's folder: `config.json`, `weights.safetensors`, `tokenizer.json`, `README.md`.

Matrices are int8 with one scale a row, `NAME.scale`; everything else is float. What is read is
checked against the sizes in the config, and the config is written last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from ..errors import ModelError
from ..models.folder import ModelFolder, check_shapes
from ..text.writing import replacing
from .bert import BertShape
from .windows import LONGEST

__all__ = ["PhraseConfig", "RuntimeForm", "read_phrase_folder", "write_phrase_folder"]

KIND = "phrases"
RuntimeForm = Literal["markers", "span"]
Floats = NDArray[np.float32]
_KEYS = 128
_HIDDEN = 128


@dataclass(frozen=True, slots=True)
class PhraseConfig:
    """What a model is, apart from its weights."""

    encoder: BertShape
    form: RuntimeForm = "markers"
    size: int = 384
    """Numbers of a vector, the extractor's log-probability not counted."""
    words: int = 24
    """Words kept of those around a phrase; 0 for a model without the lexical part."""
    window: int = 384
    overlap: int = 128

    def weights(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every weight."""
        width = self.encoder.width
        found = {
            **self.encoder.weights(),
            **_linear("phrase", self.size, 2 * width),
            **_linear("question", self.size, 2 * width),
            **_linear("trust", 1, width),
            **_linear("spans.start", 1, width),
            **_linear("spans.first", _HIDDEN, width),
            "spans.last.weight": (_HIDDEN, width),
            "spans.length.weight": (LONGEST, _HIDDEN),
            **_linear("spans.join", 1, _HIDDEN),
        }
        if self.words:
            found |= _linear("lexical.seek", _KEYS, 2 * width) | _linear(
                "lexical.key", _KEYS, width
            )
            found |= _linear("lexical.own", 1, width) | _linear("lexical.expand", width, width)
            found |= {"lexical.shift": (1,), "lexical.threshold": (1,)}
        return found


def read_phrase_folder(folder: str | PathLike[str]) -> tuple[PhraseConfig, dict[str, Floats]]:
    """The config and the weights, whole numbers made real again."""
    opened = ModelFolder.open(folder, kind=KIND)
    config = _config(opened)
    tensors = opened.tensors()
    for name in [name for name in tensors if name.endswith(".scale")]:
        scale = tensors.pop(name)
        if name.removesuffix(".scale") in tensors:
            tensors[name.removesuffix(".scale")] *= scale[:, None]
    check_shapes(tensors, config.weights(), path=opened.path)
    return config, tensors


def write_phrase_folder(
    folder: str | PathLike[str],
    *,
    config: PhraseConfig,
    weights: Mapping[str, Floats],
    tokeniser: str,
    card: str,
) -> Path:
    """Write a folder that `read_phrase_folder` reads; `tokeniser` is the text of its JSON file."""
    check_shapes(weights, config.weights(), path=folder)
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, NDArray[Any]] = {}
    for name, value in weights.items():
        tensors |= _packed(name, np.asarray(value, np.float32))
    entries = {"format": 1, "kind": KIND, **asdict(config)}
    files = {
        "weights.safetensors": save(tensors),
        "tokenizer.json": tokeniser.encode(),
        "README.md": card.encode(),
        "config.json": (json.dumps(entries, indent=2) + "\n").encode(),
    }
    for file, content in files.items():
        with replacing(path / file) as stream:
            stream.write(content)
    return path


def _packed(name: str, value: Floats) -> dict[str, NDArray[Any]]:
    """A matrix as int8 and a scale a row; small things as they are."""
    if value.ndim < 2 or len(value) < 3:
        return {name: value}
    scale = np.maximum(np.abs(value).max(1), 1e-12) / 127
    return {
        name: np.rint(value / scale[:, None]).astype(np.int8),
        f"{name}.scale": scale.astype(np.float32),
    }


def _config(folder: ModelFolder) -> PhraseConfig:
    given = {
        name: folder.config.get(name) for name in (field.name for field in fields(PhraseConfig))
    }
    try:
        config = PhraseConfig(**{**given, "encoder": BertShape(**given["encoder"])})  # type: ignore
    except (TypeError, KeyError) as error:
        raise ModelError(
            f"{folder.path / 'config.json'} does not describe a model: {error}."
        ) from error
    sizes = [
        config.size,
        config.words,
        config.window,
        config.overlap,
        *asdict(config.encoder).values(),
    ]
    if config.form not in get_args(RuntimeForm) or not all(
        isinstance(size, int | float) and size >= 0 for size in sizes
    ):
        raise ModelError(f"{folder.path / 'config.json'} must hold sizes and a form, got {given}.")
    return config


def _linear(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}
