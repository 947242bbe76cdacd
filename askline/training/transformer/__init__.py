"""
Transformers as selectors: any Hugging Face encoder over (question, candidate), cut to any depth.

`PairNetwork.start(folder)` puts a head on an encoder, `train_transformer` transfers and adapts it,
and `save_network` writes a folder, for the plain head one that sentence-transformers loads.
"""

from __future__ import annotations

from .averaging import average, blend
from .crew import Crew
from .cross_encoder import load_cross_encoder, save_cross_encoder
from .folder import load_network, save_network
from .journal import Journal, plot_journal
from .loop import Dev, Phase, TransformerRecipe, train_transformer
from .network import HEADS, Head, PairNetwork
from .pairs import PairSet
from .ranker import TransformerRanker
from .tanda import Tanda, tanda
from .teaching import TaughtLists, teacher_scores
from .texts import encode_pairs

__all__ = [
    "HEADS",
    "Crew",
    "Dev",
    "Head",
    "Journal",
    "PairNetwork",
    "PairSet",
    "Phase",
    "Tanda",
    "TaughtLists",
    "TransformerRanker",
    "TransformerRecipe",
    "average",
    "blend",
    "encode_pairs",
    "load_cross_encoder",
    "load_network",
    "plot_journal",
    "save_cross_encoder",
    "save_network",
    "tanda",
    "teacher_scores",
    "train_transformer",
]
