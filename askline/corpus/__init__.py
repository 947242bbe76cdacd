"""
A corpus of documents: the store, the indexes derived from it, retrieval, and `ask`.

Asking, connectors and the building of shards are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    MissingShard,
    NotReadFiles,
    RetrievedSentence,
    VerifyReport,
)
from .shards import ShardInfo

if TYPE_CHECKING:
    from .ask import answer
    from .connectors import Connector, connect
    from .retrieval import HasNeighbors, HasPassages, Retriever
    from .shard_building import build_shards, finish_shards, write_shard

_LATER = {
    "Connector": "connectors",
    "HasNeighbors": "retrieval",
    "HasPassages": "retrieval",
    "Retriever": "retrieval",
    "answer": "ask",
    "connect": "connectors",
    "build_shards": "shard_building",
    "finish_shards": "shard_building",
    "write_shard": "shard_building",
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


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    return value
