"""
A reader of its own on a cascade that stays as it is.

The cascade's folder is what is trained on, as it ships: its weights, int8 or not, are the start,
and none of them changes. What is learnt is an adapter (`models/cascade_config.py`).
"""

from __future__ import annotations

from .fitting import ReaderRecipe, fit_reader
from .network import AdaptedReader
from .storing import mean_of, write_reader

__all__ = ["AdaptedReader", "ReaderRecipe", "fit_reader", "mean_of", "write_reader"]
