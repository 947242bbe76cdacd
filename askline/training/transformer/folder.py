"""
A trained network as a folder: a CrossEncoder folder, with one more file for the heads it lacks.

`save_network` and `load_network` take every head; what they write for the plain head is what
`save_cross_encoder` writes.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ...errors import ModelError
from .cross_encoder import Activation, load_cross_encoder, load_tokeniser, save_cross_encoder
from .network import HEADS, Head, PairNetwork

__all__ = ["load_network", "load_selector", "save_network"]

_HEAD = "head.safetensors"
_KEY = "askline_head"


def save_network(network: PairNetwork, tokeniser: Any, folder: str | PathLike[str]) -> Path:
    """Write the folder. Weights are safetensors."""
    if network.scorer is None:
        return save_cross_encoder(network, tokeniser, folder)
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    encoder: Any = network.encoder
    setattr(encoder.config, _KEY, network.head)
    encoder.save_pretrained(path)
    tokeniser.save_pretrained(path)
    save_file(network.scorer.state_dict(), path / _HEAD)
    return path


def load_network(folder: str | PathLike[str]) -> tuple[PairNetwork, Any]:
    """A network and its tokeniser, with every weight checked."""
    network, tokeniser, _ = load_selector(folder)
    return network, tokeniser


def load_selector(folder: str | PathLike[str]) -> tuple[PairNetwork, Any, Activation]:
    """The same, and what makes a score of the network's; heads of our own give it as it is."""
    path = Path(folder).expanduser()
    if not (path / _HEAD).is_file():
        return load_cross_encoder(path)
    head = json.loads((path / "config.json").read_text(encoding="utf-8")).get(_KEY)
    if head not in HEADS or head == "plain":
        raise ModelError(f"{path} has a {_HEAD}, but its config names {head!r} as the head.")
    network = PairNetwork.start(path, head=cast(Head, head))
    assert network.scorer is not None  # only the plain head has none
    try:
        network.scorer.load_state_dict(load_file(path / _HEAD))
    except (SafetensorError, RuntimeError) as error:
        raise ModelError(f"{path / _HEAD} is damaged or of another network: {error}") from error
    return network.eval(), load_tokeniser(path), "identity"
