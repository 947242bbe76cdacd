"""
Where a corpus is kept. `Corpus` asks a `Storage` for its documents and for the search index.

There are `FolderStorage`, a folder or memory, and `PostgresStorage`, a database that many machines
share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import NamedTuple

from .corpus_phrases import CorpusPhrases
from .document_store import DocumentStore
from .passages import PassageIndex

__all__ = ["Storage", "StorageStatus"]


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

    store: DocumentStore
    phrases: CorpusPhrases
    location: str | None
    """What `Corpus.open` takes to open it again; None for memory."""
    place: str | None
    """The location as it is shown, without a password; None for memory."""

    @abstractmethod
    def search_index(self, *, rebuild: bool = False) -> PassageIndex:
        """A search index with all changes; with `rebuild`, built anew from the documents."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Whoever adds or removes documents does it in here."""

    @abstractmethod
    def repair_search(self, *, rebuild: bool) -> bool:
        """Rebuild the search index if it is damaged, or with `rebuild`; whether it was rebuilt."""

    @abstractmethod
    def status(self) -> StorageStatus:
        """The current state; nothing is changed."""

    def close(self) -> None:
        """Close files and connections."""
        self.phrases.close()
        self.store.close()
