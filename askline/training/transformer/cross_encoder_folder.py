"""
Folders of cross-encoders.

With the plain head, a folder is a sentence-transformers CrossEncoder folder: a Hugging Face
sequence classifier with one output, its tokenizer, and the name of the activation between output
and score. With another head, the folder has one more file.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, cast

from safetensors.torch import save_file

from ...errors import InputError, ModelError
from .pair_network import (
    HEADS,
    Head,
    PairNetwork,
    import_transformers,
    load_head,
    read_encoder,
)

__all__ = [
    "load_cross_encoder",
    "load_network",
    "load_tokenizer",
    "save_cross_encoder",
    "save_network",
]


def load_cross_encoder(folder: str | PathLike[str]) -> tuple[PairNetwork, Any]:
    """
    The network and its tokenizer.

    Every weight must exist: a folder without a classifier is only an encoder.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ModelError(f"No model folder at {path}. Name a folder with a cross-encoder.")
    encoder, missing = read_encoder(path, plain=True)
    missing = [name for name in missing if not name.endswith("position_ids")]
    if missing:
        raise ModelError(
            f"{path} is not a cross-encoder: it has no {', '.join(missing)}. To train a "
            "cross-encoder from it, use it as --init."
        )
    return PairNetwork(encoder, "plain", None), load_tokenizer(path)


def save_cross_encoder(network: PairNetwork, tokenizer: Any, folder: str | PathLike[str]) -> Path:
    """
    Write a CrossEncoder folder whose scores are those of the network, without a sigmoid.

    Only the plain head is accepted, because CrossEncoder has no other.
    """
    if network.head != "plain":
        raise InputError(
            f"Only the plain head can be saved as a CrossEncoder, got {network.head!r}."
        )
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    encoder: Any = network.encoder
    encoder.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    encoder.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def load_tokenizer(folder: str | PathLike[str]) -> Any:
    """The tokenizer of a model folder."""
    try:
        found = import_transformers().AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # the library raises many kinds of errors
        raise ModelError(f"The tokenizer in {folder} cannot be loaded: {error}") from error
    if not set(found.get_vocab()) - set(found.all_special_tokens):
        # Without files, some versions of the library return a tokenizer that knows no words.
        raise ModelError(f"No tokenizer in {folder}: add its files, such as tokenizer.json.")
    return found


_HEAD = "head.safetensors"
_KEY = "askline_head"


def save_network(network: PairNetwork, tokenizer: Any, folder: str | PathLike[str]) -> Path:
    """Write a folder for a network with any head. Weights are safetensors."""
    if network.scorer is None:
        return save_cross_encoder(network, tokenizer, folder)
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    encoder: Any = network.encoder
    setattr(encoder.config, _KEY, network.head)
    encoder.save_pretrained(path)
    tokenizer.save_pretrained(path)
    save_file(network.scorer.state_dict(), path / _HEAD)
    return path


def load_network(folder: str | PathLike[str]) -> tuple[PairNetwork, Any]:
    """A network and its tokenizer, with every weight checked."""
    path = Path(folder).expanduser()
    if not (path / _HEAD).is_file():
        return load_cross_encoder(path)
    head = json.loads((path / "config.json").read_text(encoding="utf-8")).get(_KEY)
    if head not in HEADS or head == "plain":
        raise ModelError(f"{path} has a {_HEAD}, but its config names {head!r} as the head.")
    network = PairNetwork.start(path, head=cast(Head, head))
    assert network.scorer is not None  # only the plain head has none
    load_head(network.scorer, path / _HEAD)
    return network.eval(), load_tokenizer(path)
