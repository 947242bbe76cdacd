"""
Where a corpus is kept. `Corpus` asks a `Storage` for its documents and for the search index.

There are `FolderStorage`, a folder or memory, `ShardedStorage`, a folder of shards, and
`PostgresStorage`, a database that many machines share.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .corpus_phrases import PhraseIndexStatus
from .document_store import CorpusReader, DocumentStore
from .passages import PassageIndex
from .results import MissingShard

if TYPE_CHECKING:  # phrases load numpy, ONNX and a model
    from .phrase_retrieval import MergedPhraseRetriever, PhraseRetriever

__all__ = ["Phrases", "Storage", "StorageStatus", "is_postgres_url"]


class Phrases(Protocol):
    """The phrases of a corpus."""

    def encode(
        self,
        model: str | os.PathLike[str] | None = None,
        on_document: Callable[[], None] | None = None,
    ) -> None:
        """Update the index from the store; without `model`, with the model used last."""
        ...

    def retriever(self) -> PhraseRetriever | MergedPhraseRetriever:
        """A retriever over an index that is up to date with the store."""
        ...

    def status(self) -> PhraseIndexStatus:
        """The current state; nothing is changed."""
        ...

    def close(self) -> None:
        """Close the index."""
        ...


def is_postgres_url(location: object) -> bool:
    """Whether the location of a corpus is a PostgreSQL database."""
    return isinstance(location, str) and location.startswith(("postgresql://", "postgres://"))


class StorageStatus(NamedTuple):
    """The state of the search index, and sizes in bytes."""

    searchable: bool
    """Whether the search index contains every change."""
    store_bytes: int
    search_bytes: int
    writer: int | None
    """The process that holds the writer lock, if there is such a lock."""


class Storage(ABC):
    """The documents of a corpus, the search index over them, and who may write."""

    store: CorpusReader
    location: str | None
    """What `Corpus.open` takes to open it again; None for memory."""
    place: str | None
    """The location as it is shown, without a password; None for memory."""
    missing_shards: tuple[MissingShard, ...] = ()

    @property
    @abstractmethod
    def phrases(self) -> Phrases:
        """The phrases of the corpus."""

    @property
    def parts(self) -> Sequence[Storage]:
        """The storages of all shards that are there; empty if the corpus is not sharded."""
        return ()

    @abstractmethod
    def search_index(self, *, rebuild: bool = False) -> PassageIndex:
        """A search index with all changes; with `rebuild`, built anew from the documents."""

    @abstractmethod
    def writing(self, *, repairing: bool = False) -> AbstractContextManager[DocumentStore]:
        """
        The store to change. Whoever adds or removes documents does it in here.

        With `repairing`, the search index may be unusable, and `repair_search` follows.
        """

    @abstractmethod
    def repair_search(self, *, rebuild: bool) -> bool:
        """Rebuild the search index if it is damaged, or with `rebuild`; whether it was rebuilt."""

    @abstractmethod
    def status(self) -> StorageStatus:
        """The current state; nothing is changed."""

    def drop_damaged(self) -> bool:
        """After an error, go on without shards that are damaged; False if there are none."""
        return False

    def close(self) -> None:
        """Close files and connections."""
        self.phrases.close()
        self.store.close()
