"""One ranker a file, all alike inside: options as fields, `score` or `rank`, nothing else."""

from __future__ import annotations

from .algebra import (
    Calibrated,
    Composable,
    Cut,
    Interruptible,
    Pipeline,
    ScoringRanker,
    Traceable,
    answer_threshold,
    trace,
)
from .bm25 import BM25
from .cascade import Cascade
from .compare_aggregate import CompareAggregate
from .cosinet import Cosinet
from .jaccard import Jaccard
from .original_order import OriginalOrder
from .overlap import IdfOverlap, TieRule, WordOverlap, WordOverlapThenOrder
from .random_order import RandomOrder
from .relational_cnn import RelationalCNN
from .sorting import by_score
from .within import Within

__all__ = [
    "BM25",
    "Calibrated",
    "Cascade",
    "CompareAggregate",
    "Composable",
    "Cosinet",
    "Cut",
    "IdfOverlap",
    "Interruptible",
    "Jaccard",
    "OriginalOrder",
    "Pipeline",
    "RandomOrder",
    "RelationalCNN",
    "ScoringRanker",
    "TieRule",
    "Traceable",
    "Within",
    "WordOverlap",
    "WordOverlapThenOrder",
    "answer_threshold",
    "by_score",
    "trace",
]
