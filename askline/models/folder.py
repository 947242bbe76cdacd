"""
Model folders: how they are written, opened and checked.

A folder holds `config.json`, `weights.safetensors`, `README.md` (the model card) and, for models on
word vectors, either `vectors.safetensors` or a reference to the vectors shipped with askline.
Everything is checked when it is read, and pickles are never read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save

from ..errors import ModelError, UnknownNameError
from ..text.atomic_write import atomic_write
from ..text.language import LANGUAGE_NAMES
from .mapped_tensors import map_tensors
from .word_vectors import SHIPPED, WordVectors

__all__ = [
    "SHIPPED_LANGUAGES",
    "ModelCard",
    "ModelFolder",
    "check_shapes",
    "pickle_hint",
    "read_config",
    "shipped_model_folder",
    "write_folder",
]

SHIPPED_LANGUAGES = ("en", "fr")
"""The languages of the models that ship with askline."""
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
    """An opened folder with a checked config. Weights and vectors are read on request."""

    path: Path
    config: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | PathLike[str], *, kind: str | tuple[str, ...]) -> ModelFolder:
        """Open a folder; raises ModelError if it does not hold a model of one of these kinds."""
        folder = Path(path).expanduser()
        if not folder.is_dir():
            raise ModelError(f"No model folder at {folder}. Name a folder that holds {_CONFIG}.")
        config = read_config(folder / _CONFIG)
        if config.get("format") != _FORMAT:
            raise ModelError(
                f"{folder / _CONFIG} must have format {_FORMAT}, got {config.get('format')!r}. "
                "Another version of askline wrote it."
            )
        kinds = (kind,) if isinstance(kind, str) else kind
        if config.get("kind") not in kinds:
            expected = " or ".join(kinds)
            raise ModelError(f"{folder} must hold a {expected} model, got {config.get('kind')!r}.")
        return cls(folder, config)

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """All weights by name, as float32."""
        stored = self.stored_tensors()
        return {name: np.array(tensor, np.float32) for name, tensor in stored.items()}

    def stored_tensors(self) -> dict[str, NDArray[Any]]:
        """All weights by name, in their stored precision: read-only views of the mapped file."""
        path = self.path / _WEIGHTS
        if not path.is_file():
            raise ModelError(f"No {_WEIGHTS} in {self.path}.{pickle_hint(self.path)}")
        try:
            return map_tensors(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelError(
                f"{path} is not a valid safetensors file ({error}). Copy the folder again."
            ) from error

    @property
    def has_shipped_vectors(self) -> bool:
        """Whether the model was trained with the word vectors that ship with askline."""
        return bool(self.config.get("vectors") == {"name": SHIPPED})

    def vectors(self) -> WordVectors:
        """The word vectors that the model was trained with."""
        entry = self.config.get("vectors")
        if self.has_shipped_vectors:
            return WordVectors.load()
        if entry == {"file": _VECTORS}:
            return WordVectors.load(self.path / _VECTORS)
        raise ModelError(
            f"{self.path / _CONFIG} must name its vectors as "
            f'{{"name": "{SHIPPED}"}} or {{"file": "{_VECTORS}"}}, got {entry!r}.'
        )


def check_shapes(
    tensors: Mapping[str, NDArray[np.float32]],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    path: str | PathLike[str],
) -> None:
    """Raise ModelError if the tensors do not have exactly these shapes, naming all that differ."""
    actual = {name: tensor.shape for name, tensor in tensors.items()}
    problems = [
        f"{name} must be {shapes.get(name, 'absent')}, got {actual.get(name, 'none')}"
        for name in sorted(shapes.keys() | actual.keys())
        if shapes.get(name) != actual.get(name)
    ]
    if problems:
        raise ModelError(f"The weights in {path} do not fit its config: {'; '.join(problems)}.")


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
    Write a folder that `ModelFolder.open` reads; `files` are further files by name.

    Each file is written atomically, and the config last: an interrupted write leaves a folder that
    cannot be opened.
    """
    folder = Path(path).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    entries = {**config, "format": _FORMAT}
    if vectors is not None:
        is_shipped = vectors.name == SHIPPED
        entries["vectors"] = {"name": SHIPPED} if is_shipped else {"file": _VECTORS}
        if not is_shipped:
            vectors.save(folder / _VECTORS)
    for name, content in (files or {}).items():
        _write_file(folder / name, content)
    # np.ascontiguousarray turns a scalar into an array of one number; reshape undoes that.
    weights = {
        name: np.ascontiguousarray(tensor).reshape(tensor.shape) for name, tensor in tensors.items()
    }
    _write_file(folder / _WEIGHTS, save(weights))
    _write_file(folder / _CARD, card.encode())
    text = json.dumps(entries, indent=2, ensure_ascii=False) + "\n"
    _write_file(folder / _CONFIG, text.encode())
    return folder


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What the README.md of a model folder says, in order."""

    title: str
    facts: Sequence[str] = ()
    """List items; an indented one belongs to the item before."""
    text: str = ""
    command: str = ""
    """The command that trains the same weights again."""
    table: Sequence[Sequence[str]] = ()
    """Measures; the first row is the header."""

    def to_markdown(self) -> str:
        """The card as Markdown."""
        lines = [f"# {self.title}", "", *map(_card_item, self.facts), ""]
        if self.text:
            lines += [self.text, ""]
        if self.command:
            lines += ["```", self.command, "```", ""]
        if self.table:
            header, *rows = self.table
            every = [header, ["---"] * len(header), *rows]
            lines += [*(f"| {' | '.join(row)} |" for row in every), ""]
        return "\n".join(lines)


def _card_item(fact: str) -> str:
    indent = len(fact) - len(fact.lstrip())
    return f"{' ' * indent}- {fact.lstrip()}"


def pickle_hint(folder: Path) -> str:
    """A sentence about pickled weights in the folder, to append to an error; empty if none."""
    pickles = sorted(file.name for file in folder.iterdir() if file.suffix in _PICKLES)
    if not pickles:
        return ""
    return f" It has {', '.join(pickles)}, but pickled weights are never read: they can run code."


def _write_file(target: Path, content: bytes) -> None:
    with atomic_write(target) as stream:
        stream.write(content)


def read_config(path: Path) -> dict[str, Any]:
    """The JSON object in the `config.json` of a folder."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"No {path.name} in {path.parent}.{pickle_hint(path.parent)}") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a JSON object: {error}") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} must be a JSON object, got {type(config).__name__}.")
    return config


def shipped_model_folder(kind: str, language: str = "en") -> Path:
    """The folder of the model that ships with askline, such as a cascade, for a language."""
    if language not in SHIPPED_LANGUAGES:
        raise UnknownNameError("language", language, SHIPPED_LANGUAGES)
    name = kind if language == "en" else f"{kind}-{language}"
    path = Path(str(files("askline.models"))) / "shipped" / name
    if not path.is_dir():
        raise ModelError(
            f"This copy of askline ships without the {LANGUAGE_NAMES[language]} model {name!r}. "
            f"Name the folder of a model; `askline train {kind}` makes one."
        )
    return path
