"""
Rankers: the base class, pipelines, and one module per family.

Names are imported when first used: a program that only indexes files needs no ranker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import lazy_imports

if TYPE_CHECKING:
    from .base import Cut, FunctionRanker, Pipeline, Ranker, WithDeadline
    from .cascade import Cascade
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
    from .paper_networks import CompareAggregate, RelationalCNN
    from .requests import sort_by_score

_MODULES = {
    "base": ("Cut", "FunctionRanker", "Pipeline", "Ranker", "WithDeadline"),
    "cascade": ("Cascade",),
    "cosinet": ("Cosinet",),
    "lexical": (
        "BM25",
        "IdfOverlap",
        "Jaccard",
        "OriginalOrder",
        "RandomOrder",
        "TieRule",
        "WordOverlap",
        "WordOverlapThenOrder",
    ),
    "paper_networks": ("CompareAggregate", "RelationalCNN"),
    "requests": ("sort_by_score",),
}

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


__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
