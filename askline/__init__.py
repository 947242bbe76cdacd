"""
Ask a question, get the line that answers it.

    >>> import askline
    >>> ranker = askline.load("jaccard % 100 >> bm25")
    >>> ranker.rank("Who wrote Emma?", ["Emma is a novel.", "Jane Austen wrote Emma."])[0].text
    'Jane Austen wrote Emma.'

Names are imported when first used, so that `import askline` and `askline --help` stay fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy_imports import lazy_imports

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
        Ranker,
        RelationalCNN,
        WithDeadline,
        WordOverlap,
        WordOverlapThenOrder,
    )
    from .rankers.registry import ranker_names
    from .rankers.spec import load
    from .types import (
        Candidate,
        Cost,
        Document,
        Hit,
        Passage,
        Question,
        QuestionSet,
        Ranking,
        Source,
        StageReport,
    )

__version__ = "0.1.0"

_MODULES = {
    "corpus": ("Answer", "Answers", "Corpus"),
    "errors": (
        "AsklineError",
        "CorpusError",
        "DataError",
        "InputError",
        "MissingExtraError",
        "ModelError",
        "RankerError",
        "SpecError",
    ),
    "rankers": (
        "BM25",
        "Cascade",
        "CompareAggregate",
        "Cosinet",
        "Cut",
        "IdfOverlap",
        "Jaccard",
        "OriginalOrder",
        "Pipeline",
        "RandomOrder",
        "Ranker",
        "RelationalCNN",
        "WithDeadline",
        "WordOverlap",
        "WordOverlapThenOrder",
    ),
    "rankers.registry": ("ranker_names",),
    "rankers.spec": ("load",),
    "types": (
        "Candidate",
        "Cost",
        "Document",
        "Hit",
        "Passage",
        "Question",
        "QuestionSet",
        "Ranking",
        "Source",
        "StageReport",
    ),
}

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
    "Document",
    "Hit",
    "IdfOverlap",
    "InputError",
    "Jaccard",
    "MissingExtraError",
    "ModelError",
    "OriginalOrder",
    "Passage",
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
    "WithDeadline",
    "WordOverlap",
    "WordOverlapThenOrder",
    "load",
    "ranker_names",
]


__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
