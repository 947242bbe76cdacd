"""Documents in, answers out: the store, the search index beside it, and `ask`."""

from __future__ import annotations

from .answers import AddReport, Answer, Answers, FileReport, Found, Status
from .asking import answer
from .corpus import Corpus
from .retrieval import Neighbours, Retriever

__all__ = [
    "AddReport",
    "Answer",
    "Answers",
    "Corpus",
    "FileReport",
    "Found",
    "Neighbours",
    "Retriever",
    "Status",
    "answer",
]
