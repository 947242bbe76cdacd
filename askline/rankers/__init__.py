"""Rankers: the base class, pipelines, and one module per family."""

from __future__ import annotations

from .base import Cut, FunctionRanker, Pipeline, Ranker, WithDeadline
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
from .relational_cnn import RelationalCNN
from .requests import sort_by_score

__all__ = [
    "BM25",
    "Cascade",
    "CompareAggregate",
    "Cosinet",
    "Cut",
    "FunctionRanker",
    "IdfOverlap",
    "Jaccard",
    "OriginalOrder",
    "Pipeline",
    "RandomOrder",
    "Ranker",
    "RelationalCNN",
    "TieRule",
    "WithDeadline",
    "WordOverlap",
    "WordOverlapThenOrder",
    "sort_by_score",
]
