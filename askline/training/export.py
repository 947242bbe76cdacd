"""The way out: a trained network as a model folder that runs without torch."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import ModelError
from ..models.folder import write_folder
from ..models.light_config import Layout
from ..models.word_vectors import WordVectors
from ..text.words import TOKENISER
from .card import card
from .loop import Trained
from .modules import build

__all__ = ["as_start", "export", "tensors_of"]


def export(
    trained: Trained,
    folder: str | PathLike[str],
    *,
    vectors: WordVectors,
    dev: str | None = None,
    command: str = "",
) -> Path:
    """
    Write the folder: config, weights, word vectors, card.

    `dev` is the name of the set that the history was measured on, `command` what to run to get the
    same weights again; both are for the card.
    """
    config = trained.layout.as_config() | {"tokeniser": TOKENISER}
    text = card(trained, dev=dev, command=command, vectors=str(vectors))
    tensors = tensors_of(trained.network)
    return write_folder(folder, config=config, tensors=tensors, card=text, vectors=vectors)


def tensors_of(network: nn.Module) -> dict[str, NDArray[np.float32]]:
    """The weights by the names that folders use, shapes as torch has them."""
    return {
        _folder_name(name): np.ascontiguousarray(value.detach().cpu().numpy())
        for name, value in network.state_dict().items()
    }


def as_start(tensors: Mapping[str, NDArray[np.float32]], layout: Layout) -> dict[str, Tensor]:
    """Weights out of a folder, for `train(start=…)` with a network of the same layout."""
    own = {_folder_name(name): (name, value) for name, value in build(layout).state_dict().items()}
    shapes = {name: tuple(value.shape) for name, (_, value) in own.items()}
    found = {name: value.shape for name, value in tensors.items()}
    if shapes != found:
        unlike = sorted(
            name for name in shapes.keys() | found.keys() if shapes.get(name) != found.get(name)
        )
        raise ModelError(
            f"The weights to start from are not those of {layout}: {', '.join(unlike)} differ. "
            "Take the list layer, channels and word vectors that they were trained with."
        )
    return {own[name][0]: torch.tensor(value) for name, value in tensors.items()}


def _folder_name(name: str) -> str:
    return name.replace("list.reader.", "list.")
