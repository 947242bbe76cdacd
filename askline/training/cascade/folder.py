"""
A trained cascade as a folder in Hugging Face's manner.

`config.json` is the encoder's with the cascade's shape under `askline_cascade`, `model.safetensors`
the bare encoder, `cascade.safetensors` the classifiers and the reader, beside them the tokeniser.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ...errors import InputError, ModelError, UnknownNameError
from ..transformer.cross_encoder import load_tokeniser
from ..transformer.network import transformers
from .network import CascadeNetwork, CascadeShape

__all__ = ["is_cascade", "load_cascade", "save_cascade"]

_HEADS = "cascade.safetensors"
_KEY = "askline_cascade"


def is_cascade(folder: str | PathLike[str]) -> bool:
    """Whether a folder is one that `save_cascade` wrote."""
    return (Path(folder) / _HEADS).is_file()


def save_cascade(network: CascadeNetwork, tokeniser: Any, folder: str | PathLike[str]) -> Path:
    """Write the folder. Weights are safetensors."""
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    encoder: Any = network.encoder
    shape = network.shape
    setattr(
        encoder.config,
        _KEY,
        {"depths": list(shape.depths), "head": shape.head, "reader": shape.reader},
    )
    encoder.save_pretrained(path)
    tokeniser.save_pretrained(path)
    heads = {
        name: value.detach().cpu().contiguous()
        for name, value in network.state_dict().items()
        if not name.startswith("encoder.")
    }
    save_file(heads, path / _HEADS, metadata={"format": "pt"})
    return path


def load_cascade(folder: str | PathLike[str]) -> tuple[CascadeNetwork, Any]:
    """A network and its tokeniser, with every weight checked."""
    path = Path(folder).expanduser()
    if not is_cascade(path):
        raise ModelError(f"No {_HEADS} in {path}. Name a folder that a cascade was written to.")
    network = CascadeNetwork(_bare_encoder(path), _shape(path))
    try:
        found = load_file(path / _HEADS)
        wrong = network.load_state_dict(found, strict=False)
    except (SafetensorError, RuntimeError) as error:
        raise ModelError(f"{path / _HEADS} is damaged or of another network: {error}") from error
    missing = [name for name in wrong.missing_keys if not name.startswith("encoder.")]
    if missing or wrong.unexpected_keys:
        raise ModelError(
            f"{path / _HEADS} does not fit config.json: missing {missing}, "
            f"too many {wrong.unexpected_keys}."
        )
    return network.eval(), load_tokeniser(path)


def _bare_encoder(path: Path) -> Any:
    """The encoder of the config, without the pooler that some families would add."""
    library = transformers()
    try:
        config = library.AutoConfig.from_pretrained(path)
        with torch.random.fork_rng(devices=[]):  # it is drawn first, then overwritten
            try:
                encoder = library.AutoModel.from_config(config, add_pooling_layer=False)
            except TypeError:  # a family without poolers
                encoder = library.AutoModel.from_config(config)
        encoder.pooler = None
        encoder.float().load_state_dict(load_file(path / "model.safetensors"))
    except Exception as error:  # the library raises of many kinds, some of them its own
        raise ModelError(
            f"The encoder in {path} cannot be loaded: {error} Check that the folder is whole."
        ) from error
    return encoder


def _shape(path: Path) -> CascadeShape:
    found = json.loads((path / "config.json").read_text(encoding="utf-8")).get(_KEY)
    try:
        return CascadeShape(tuple(found["depths"]), found["head"], bool(found["reader"]))
    except (TypeError, KeyError, InputError, UnknownNameError) as error:
        raise ModelError(f"config.json in {path} has no sound {_KEY!r}: {error!r}.") from error
