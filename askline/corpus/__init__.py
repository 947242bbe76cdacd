"""Documents in, answers out: the store, the search index beside it, and `ask`."""

from __future__ import annotations

from .ask import answer
from .connectors import Connector, connect
from .corpus import Corpus
from .results import (
    AddReport,
    Answer,
    Answers,
    DocumentInfo,
    FileReport,
    Found,
    Phrase,
    Sentence,
    Status,
)
from .retrieval import Neighbours, Retriever

__all__ = [
    "AddReport",
    "Answer",
    "Answers",
    "Connector",
    "Corpus",
    "DocumentInfo",
    "FileReport",
    "Found",
    "Neighbours",
    "Phrase",
    "Retriever",
    "Sentence",
    "Status",
    "answer",
    "connect",
]
