"""One ranker a file, all alike inside: options as fields, `score` or `rank`, nothing else."""

from __future__ import annotations

from .base import by_score
from .cascade import Cascade
from .compare_aggregate import CompareAggregate
from .cosinet import Cosinet
from .lexical import (
    BM25,
    IdfOverlap,
    Jaccard,
    OriginalOrder,
    RandomOrder,
    TieRule,
    WordOverlap,
    WordOverlapThenOrder,
)
from .pipeline import (
    Calibrated,
    Composable,
    Cut,
    Interruptible,
    Pipeline,
    ScoringRanker,
    Traceable,
    Within,
    answer_threshold,
    trace,
)
from .relational_cnn import RelationalCNN

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
