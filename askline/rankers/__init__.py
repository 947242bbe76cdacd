"""
Rankers: the base class, pipelines, and one module per family.

Names are imported when first used: a program that only indexes files needs no ranker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "base": ("Cut", "FunctionRanker", "Pipeline", "Ranker", "WithDeadline"),
    "cascade": ("Cascade",),
    "compare_aggregate": ("CompareAggregate",),
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
    "relational_cnn": ("RelationalCNN",),
    "requests": ("sort_by_score",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
