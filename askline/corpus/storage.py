"""
Where a corpus is kept. `Corpus` asks a `Storage` for its documents and for the search index.

`FolderStorage` is here: a folder of this machine, or memory. `ShardedStorage`, a folder of shards,
is in `shards.py`, and `PostgresStorage`, a database that many machines share, in
`postgres_store.py`.

A folder has the store (`store.sqlite`), the search index (`search/`), the phrase index
(`phrases/`), and the file of the writer lock. The indexes are derived from the store.
"""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import CorpusError
from .corpus_phrases import PHRASES_FOLDER, CorpusPhrases, PhraseIndexStatus
from .document_store import CorpusReader, DocumentStore
from .lock import LOCK_NAME, lock_holder, writer_lock
from .passages import PassageIndex
from .search_index import (
    SEARCH_FOLDER,
    PassageWriter,
    SearchIndex,
    sync_folder_index,
    synced_search_index,
)
from .store import REBUILD_SUFFIX, Store

if TYPE_CHECKING:  # phrases load numpy, ONNX and a model
    from .phrase_retrieval import MergedPhraseRetriever, PhraseRetriever
    from .results import MissingShard

__all__ = [
    "MANIFEST_NAME",
    "SHARD_FILE",
    "STORE_NAME",
    "FolderStorage",
    "Phrases",
    "Storage",
    "StorageStatus",
    "is_postgres_url",
]


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
    allow_partial: bool = False
    """Whether shards may be missing."""
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


STORE_NAME = "store.sqlite"
_STORE_FILES = {f"{STORE_NAME}{suffix}" for suffix in ("", "-wal", "-shm", REBUILD_SUFFIX)}
SHARD_FILE = "shard.json"
MANIFEST_NAME = "shards.json"
"""What a shard says about itself, in its own folder."""
_OWN_FILES = {*_STORE_FILES, LOCK_NAME, SEARCH_FOLDER, PHRASES_FOLDER, SHARD_FILE}

_LOCK_TIMEOUT_SECONDS = 2.0  # enough for a process that only updates the search index


class FolderStorage(Storage):
    """One process writes at a time; any number of threads and processes read in the meantime."""

    def __init__(self, store: Store, folder: Path | None) -> None:
        self.store: Store = store
        self.folder = folder
        self.location = None if folder is None else str(folder.absolute())
        self.place = None if folder is None else str(folder)
        self._phrases = CorpusPhrases(store, folder)
        self._search: SearchIndex | None = None

    @classmethod
    def in_memory(cls) -> FolderStorage:
        """An empty storage in memory, which ends with its process."""
        return cls(Store.in_memory(), None)

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], *, must_exist: bool = False, check: bool = True
    ) -> FolderStorage:
        """The storage in a folder; a new one if the folder is missing or empty."""
        path = Path(folder).expanduser()
        exists = (path / STORE_NAME).exists()
        store = Store.open(path / STORE_NAME, may_migrate=False) if exists else None
        if store is None:  # it must be created, or migrated from an earlier version
            _prepare_folder(path, must_exist=must_exist and not exists)
            with writer_lock(path, timeout=_LOCK_TIMEOUT_SECONDS):
                store = Store.open(path / STORE_NAME, may_migrate=True)
        assert store is not None  # it has been migrated
        if check and exists and (problem := store.quick_problem()):
            store.close()
            raise CorpusError(
                f"{path / STORE_NAME} is damaged: {' '.join(problem.split()).rstrip('.')}. "
                f"Run: askline index --verify --out {shlex.quote(str(path))}"
            )
        return cls(store, path)

    @property
    def phrases(self) -> CorpusPhrases:
        """The phrases in the folder."""
        return self._phrases

    def search_index(self, *, rebuild: bool = False) -> SearchIndex:
        """An index that is up to date with the store, unless another process is writing."""
        search = None if rebuild else self._search
        self._search = synced_search_index(self.store, self.folder, search, rebuild=rebuild)
        return self._search

    @contextmanager
    def writing(self, *, repairing: bool = False) -> Iterator[Store]:
        """
        Hold the writer lock, and update the search index before releasing it.

        With `repairing`, the index may be rebuilt inside the context.
        """
        if self.folder is None:
            yield self.store
            return
        with writer_lock(self.folder, timeout=_LOCK_TIMEOUT_SECONDS):
            if repairing:
                yield self.store
                self._search = sync_folder_index(self.store, self.folder)
                return
            passages = PassageWriter(self.store, self.folder)
            self.store.on_stored = passages.add
            try:
                yield self.store
                passages.finish()
            finally:
                self.store.on_stored = None
                passages.close()
            self._search = sync_folder_index(self.store, self.folder, passages.search)

    def repair_search(self, *, rebuild: bool) -> bool:
        """Rebuild the index of a folder if its files are damaged, or with `rebuild`."""
        is_rebuilt = rebuild or not self.is_search_intact()
        if is_rebuilt and self.folder is not None:
            sync_folder_index(self.store, self.folder, rebuild=True)
        return is_rebuilt

    def status(self) -> StorageStatus:
        """The current state; nothing is changed."""
        folder = self.folder
        search = self._search if folder is None else SearchIndex.open(folder / SEARCH_FOLDER)
        stamp = search.stamp() if search is not None else None
        return StorageStatus(
            searchable=stamp == (self.store.identity, self.store.generation),
            store_bytes=_size_bytes(folder, f"{STORE_NAME}*"),
            search_bytes=_size_bytes(folder, f"{SEARCH_FOLDER}/*"),
            writer=None if folder is None else lock_holder(folder),
        )

    def close(self) -> None:
        """Close the files. No data is lost if this is not called."""
        self._search = None
        super().close()

    def is_search_intact(self) -> bool:
        """True if there is no search index yet; it is built when it is needed."""
        if self.folder is None or not (self.folder / SEARCH_FOLDER).exists():
            return True
        search = SearchIndex.open(self.folder / SEARCH_FOLDER)
        return search is not None and search.is_intact()


def _prepare_folder(folder: Path, *, must_exist: bool) -> None:
    """Create the folder; CorpusError if it contains anything but an index."""
    if must_exist:
        raise CorpusError(
            f"No index in {folder}. Create one: "
            f"askline index PATH... --out {shlex.quote(str(folder))}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        other = sorted({entry.name for entry in folder.iterdir()} - _OWN_FILES)
    except OSError as error:
        raise CorpusError(f"{folder} cannot hold an index: {error.strerror or error}.") from error
    if other:
        raise CorpusError(
            f"{folder} is not an index: it contains other files, such as {other[0]}. "
            "Choose an empty or new folder."
        )


def _size_bytes(folder: Path | None, pattern: str) -> int:
    if folder is None:
        return 0
    total = 0
    for file in folder.glob(pattern):
        with suppress(OSError):  # another process replaces files of the search index
            total += file.stat().st_size
    return total
