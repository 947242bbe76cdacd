"""One ranker a file, all alike inside: options as fields, `score` or `rank`, nothing else."""

from __future__ import annotations

from .algebra import Composable, Cut, Pipeline, ScoringRanker, Traceable, trace
from .bm25 import BM25
from .compare_aggregate import CompareAggregate
from .cosinet import Cosinet
from .jaccard import Jaccard
from .original_order import OriginalOrder
from .overlap import IdfOverlap, TieRule, WordOverlap, WordOverlapThenOrder
from .random_order import RandomOrder
from .relational_cnn import RelationalCNN
from .sorting import by_score

__all__ = [
    "BM25",
    "CompareAggregate",
    "Composable",
    "Cosinet",
    "Cut",
    "IdfOverlap",
    "Jaccard",
    "OriginalOrder",
    "Pipeline",
    "RandomOrder",
    "RelationalCNN",
    "ScoringRanker",
    "TieRule",
    "Traceable",
    "WordOverlap",
    "WordOverlapThenOrder",
    "by_score",
    "trace",
]
