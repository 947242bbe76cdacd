"""
Interchange with sentence-transformers: CrossEncoder folders, read and written.

Such a folder is a Hugging Face sequence classifier with one output, its tokeniser, and a note on
the activation that stands between the output and the score. Three places for that note are in use,
by the age of the library that wrote it; without one, a single output means a sigmoid.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ...errors import InputError, ModelError
from .network import PairNetwork, read_encoder, transformers

__all__ = ["Activation", "load_cross_encoder", "load_tokeniser", "save_cross_encoder"]

Activation = Literal["identity", "sigmoid"]

_NAMES: dict[str, Activation] = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}


def load_cross_encoder(folder: str | PathLike[str]) -> tuple[PairNetwork, Any, Activation]:
    """
    The network, its tokeniser, and what makes CrossEncoder's score of the network's.

    Every weight must be there: a folder without its classifier is an encoder, not a selector.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ModelError(f"No model folder at {path}. Name a folder with a cross-encoder.")
    encoder, missing = read_encoder(path, plain=True)
    missing = [name for name in missing if not name.endswith("position_ids")]
    if missing:
        raise ModelError(
            f"{path} is no cross-encoder: it has no {', '.join(missing)}. To train one from it, "
            "start from it instead."
        )
    return PairNetwork(encoder, "plain", None), load_tokeniser(path), _activation(path)


def save_cross_encoder(network: PairNetwork, tokeniser: Any, folder: str | PathLike[str]) -> Path:
    """
    Write a folder whose CrossEncoder scores are the network's own, without a sigmoid.

    The other heads are not known to CrossEncoder, so they are refused.
    """
    if network.head != "plain":
        raise InputError(
            f"Only a network with the plain head makes a cross-encoder, got {network.head!r}."
        )
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    encoder: Any = network.encoder
    encoder.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    encoder.save_pretrained(path)
    tokeniser.save_pretrained(path)
    return path


def load_tokeniser(folder: str | PathLike[str]) -> Any:
    """The tokeniser of a model folder."""
    try:
        found = transformers().AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # the library raises of many kinds
        raise ModelError(f"The tokeniser in {folder} cannot be loaded: {error}") from error
    if not set(found.get_vocab()) - set(found.all_special_tokens):
        # Without its files some versions of the library make one up, to which all words are one.
        raise ModelError(f"No tokeniser in {folder}: add its files, such as tokenizer.json.")
    return found


def _activation(folder: Path) -> Activation:
    own = _json(folder / "config_sentence_transformers.json")
    config = _json(folder / "config.json")
    name = (
        own.get("activation_fn")
        or config.get("sentence_transformers", {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
        or "torch.nn.modules.activation.Sigmoid"
    )
    if name not in _NAMES:
        raise ModelError(f"{folder} has activation {name!r}. Known: {', '.join(_NAMES)}.")
    return _NAMES[name]


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
