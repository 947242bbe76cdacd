"""
Ask a question, get the line that answers it.

    >>> import askline
    >>> ranker = askline.load("jaccard % 100 >> bm25")
    >>> ranker.rank("Who wrote Emma?", ["Emma is a novel.", "Jane Austen wrote Emma."])[0].index
    1

Names are imported when first used, so that `import askline` and `askline --help` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .corpus import Answer, Answers, Corpus
    from .errors import (
        AsklineError,
        CorpusError,
        DataError,
        InputError,
        MissingExtraError,
        ModelError,
        RankerError,
        SpecError,
    )
    from .rankers import (
        BM25,
        Cascade,
        CompareAggregate,
        Cosinet,
        Cut,
        IdfOverlap,
        Jaccard,
        OriginalOrder,
        Pipeline,
        RandomOrder,
        RelationalCNN,
        WordOverlap,
        WordOverlapThenOrder,
        answer_threshold,
        trace,
    )
    from .rankers.registry import ranker_names
    from .rankers.spec import load
    from .types import (
        Candidate,
        Cost,
        Hit,
        Question,
        QuestionSet,
        Ranker,
        Ranking,
        Source,
        StageReport,
    )

__version__ = "0.1.0"

__all__ = [
    "BM25",
    "Answer",
    "Answers",
    "AsklineError",
    "Candidate",
    "Cascade",
    "CompareAggregate",
    "Corpus",
    "CorpusError",
    "Cosinet",
    "Cost",
    "Cut",
    "DataError",
    "Hit",
    "IdfOverlap",
    "InputError",
    "Jaccard",
    "MissingExtraError",
    "ModelError",
    "OriginalOrder",
    "Pipeline",
    "Question",
    "QuestionSet",
    "RandomOrder",
    "Ranker",
    "RankerError",
    "Ranking",
    "RelationalCNN",
    "Source",
    "SpecError",
    "StageReport",
    "WordOverlap",
    "WordOverlapThenOrder",
    "answer_threshold",
    "load",
    "ranker_names",
    "trace",
]

_ROOMS = ("types", "errors", "rankers.registry", "rankers.spec", "rankers", "corpus")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in _ROOMS:
            module = import_module(f"{__name__}.{room}")
            if name in module.__all__:
                value = globals()[name] = getattr(module, name)
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
