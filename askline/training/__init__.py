"""
Training, the one room that imports torch: networks, losses, the loop, and the way out to a folder.

`encode` turns a question set into numbers, `train(layout, numbers, recipe)` gives a network with
its history, and `export` writes the folder that the torch-free rankers load.
"""

from __future__ import annotations

from .encoding import EncodedSet, encode
from .export import as_start, export
from .loop import Trained, train
from .measuring import DevSet
from .modules import parameter_count
from .recipe import Epoch, Recipe, recipe_for

__all__ = [
    "DevSet",
    "EncodedSet",
    "Epoch",
    "Recipe",
    "Trained",
    "as_start",
    "encode",
    "export",
    "parameter_count",
    "recipe_for",
    "train",
]
