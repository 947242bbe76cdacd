"""A corpus of documents: the store, the indexes derived from it, retrieval, and `ask`."""

from __future__ import annotations

from .ask import answer
from .connectors import Connector, connect
from .corpus import Corpus
from .results import (
    AddReport,
    Answer,
    AnswerPhrase,
    AnswerPlace,
    Answers,
    CorpusStatus,
    DocumentInfo,
    DocumentSentence,
    FileReport,
    NotReadFiles,
    RetrievedSentence,
    VerifyReport,
)
from .retrieval import HasNeighbors, HasPassages, Retriever

__all__ = [
    "AddReport",
    "Answer",
    "AnswerPhrase",
    "AnswerPlace",
    "Answers",
    "Connector",
    "Corpus",
    "CorpusStatus",
    "DocumentInfo",
    "DocumentSentence",
    "FileReport",
    "HasNeighbors",
    "HasPassages",
    "NotReadFiles",
    "RetrievedSentence",
    "Retriever",
    "VerifyReport",
    "answer",
    "connect",
]
