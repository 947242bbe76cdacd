"""
A corpus of documents: the store, the indexes derived from it, retrieval, and `ask`.

Everything but `Corpus` is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import lazy_imports
from .corpus import Corpus

if TYPE_CHECKING:
    from .ask import answer
    from .connectors import Connector, connect
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
        MissingShard,
        NotReadFiles,
        RetrievedSentence,
        VerifyReport,
    )
    from .retrieval import HasNeighbors, HasPassages, Retriever
    from .shard_building import build_shards, finish_shards, write_shard
    from .shards import ShardInfo

_MODULES = {
    "ask": ("answer",),
    "connectors": ("Connector", "connect"),
    "results": (
        *("AddReport", "Answer", "AnswerPhrase", "AnswerPlace", "Answers", "CorpusStatus"),
        *("DocumentInfo", "DocumentSentence", "FileReport", "MissingShard", "NotReadFiles"),
        *("RetrievedSentence", "VerifyReport"),
    ),
    "retrieval": ("HasNeighbors", "HasPassages", "Retriever"),
    "shard_building": ("build_shards", "finish_shards", "write_shard"),
    "shards": ("ShardInfo",),
}

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
    "MissingShard",
    "NotReadFiles",
    "RetrievedSentence",
    "Retriever",
    "ShardInfo",
    "VerifyReport",
    "answer",
    "build_shards",
    "connect",
    "finish_shards",
    "write_shard",
]


__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
