"""
A model folder: `config.json`, `weights.safetensors`, its word vectors, `README.md` (its card).

What is read is checked first, and a pickle is never read. Word vectors are either a file of the
folder's own or a reference to the set that comes with askline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from ..errors import ModelError
from ..text.atomic_write import atomic_write
from .word_vectors import SHIPPED, WordVectors

__all__ = ["ModelFolder", "check_shapes", "pickle_hint", "write_folder"]

_FORMAT = 1
_CONFIG, _WEIGHTS, _VECTORS, _CARD = (
    "config.json",
    "weights.safetensors",
    "vectors.safetensors",
    "README.md",
)
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """An opened folder. Its config is checked; weights and vectors are read when asked for."""

    path: Path
    config: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | PathLike[str], *, kind: str | tuple[str, ...]) -> ModelFolder:
        """The folder of a model of this kind, or of one of these."""
        folder = Path(path).expanduser()
        if not folder.is_dir():
            raise ModelError(f"No model folder at {folder}. Name a folder that holds {_CONFIG}.")
        config = _read_config(folder / _CONFIG)
        if config.get("format") != _FORMAT:
            raise ModelError(
                f"{folder / _CONFIG} must have format {_FORMAT}, got {config.get('format')!r}. "
                "Another version of askline wrote it."
            )
        kinds = (kind,) if isinstance(kind, str) else kind
        if config.get("kind") not in kinds:
            wanted = " or ".join(kinds)
            raise ModelError(f"{folder} must hold a {wanted} model, got {config.get('kind')!r}.")
        return cls(folder, config)

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """All weights by name, as float32."""
        return {
            name: np.asarray(value, np.float32) for name, value in self.stored_tensors().items()
        }

    def stored_tensors(self) -> dict[str, NDArray[Any]]:
        """All weights by name, in the precision that they are kept in."""
        path = self.path / _WEIGHTS
        if not path.is_file():
            raise ModelError(f"No {_WEIGHTS} in {self.path}.{pickle_hint(self.path)}")
        try:
            return load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelError(
                f"{path} is not a valid safetensors file ({error}). Copy the folder again."
            ) from error

    def vectors(self) -> WordVectors:
        """The word vectors that the model was trained with."""
        named = self.config.get("vectors")
        if named == {"name": SHIPPED}:
            return WordVectors.load()
        if named == {"file": _VECTORS}:
            return WordVectors.load(self.path / _VECTORS)
        raise ModelError(
            f"{self.path / _CONFIG} must name its vectors as "
            f'{{"name": "{SHIPPED}"}} or {{"file": "{_VECTORS}"}}, got {named!r}.'
        )


def check_shapes(
    tensors: Mapping[str, NDArray[np.float32]],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    path: str | PathLike[str],
) -> None:
    """Refuse weights that are not exactly these, naming every one that differs."""
    found = {name: value.shape for name, value in tensors.items()}
    wrong = [
        f"{name} must be {shapes.get(name, 'absent')}, got {found.get(name, 'none')}"
        for name in sorted(shapes.keys() | found.keys())
        if shapes.get(name) != found.get(name)
    ]
    if wrong:
        raise ModelError(f"The weights in {path} do not fit its config: {'; '.join(wrong)}.")


def write_folder(
    path: str | PathLike[str],
    *,
    config: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]],
    card: str,
    vectors: WordVectors | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """
    Write a folder that `ModelFolder.open` reads; `files` are what else it holds, by name.

    Each file is put in place whole, the config last: a folder cut short has none.
    """
    folder = Path(path).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    entries = {**config, "format": _FORMAT}
    if vectors is not None:
        own = vectors.name != SHIPPED
        entries["vectors"] = {"file": _VECTORS} if own else {"name": SHIPPED}
        if own:
            vectors.save(folder / _VECTORS)
    for name, content in (files or {}).items():
        _put(folder / name, content)
    # ascontiguousarray makes a row of a single number.
    weights = {
        name: np.ascontiguousarray(value).reshape(value.shape) for name, value in tensors.items()
    }
    _put(folder / _WEIGHTS, save(weights))
    _put(folder / _CARD, card.encode())
    _put(folder / _CONFIG, (json.dumps(entries, indent=2, ensure_ascii=False) + "\n").encode())
    return folder


def _put(target: Path, content: bytes) -> None:
    with atomic_write(target) as stream:
        stream.write(content)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"No {path.name} in {path.parent}.{pickle_hint(path.parent)}") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a JSON object: {error}") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} must be a JSON object, got {type(config).__name__}.")
    return config


def pickle_hint(folder: Path) -> str:
    """What to add to "no weights here" for a folder that has pickled ones; else nothing."""
    found = sorted(file.name for file in folder.iterdir() if file.suffix in _PICKLES)
    if not found:
        return ""
    return f" It has {', '.join(found)}, but pickled weights are never read: they can run code."
