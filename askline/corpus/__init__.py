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
    MissingShard,
    NotReadFiles,
    RetrievedSentence,
    VerifyReport,
)
from .retrieval import HasNeighbors, HasPassages, Retriever
from .shard_building import build_shards, finish_shards, write_shard
from .shards import ShardInfo

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
