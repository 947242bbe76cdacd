"""
Sharded corpora: a folder of shards that is read as one corpus.

Each shard is an ordinary index folder. The manifest `shards.json` names them. It is written last
and replaced atomically, so readers see the old shards or the new ones. `shard_building.py` writes
both. `ShardedStore` reads the stores of all shards as one store; `merged_search.py` does the same
for their search indexes.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ..errors import CorpusError, NotReadReason
from .folder_storage import SHARD_FILE
from .schema import DocumentHeader, FileState, RowRecord, SentenceRecord, SkippedRecord
from .store import Store

__all__ = [
    "MANIFEST_NAME",
    "Manifest",
    "ShardInfo",
    "ShardedStore",
]

MANIFEST_NAME = "shards.json"
_FORMAT = 1
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What a shard held when it was built."""

    name: str
    """The name of its folder."""
    identity: str
    """The identity of its store."""
    documents: int
    sentences: int
    characters: int

    @classmethod
    def read(cls, folder: Path) -> ShardInfo | None:
        """What the shard in a folder says about itself; None if there is no complete shard."""
        try:
            return cls(**json.loads((folder / SHARD_FILE).read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise CorpusError(f"{folder / SHARD_FILE} cannot be read: {error}.") from error


@dataclass(frozen=True, slots=True)
class Manifest:
    """The shards of a folder, in the order of their numbers."""

    shards: tuple[ShardInfo, ...]

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of a folder; None if it has none. CorpusError if it cannot be read."""
        path = folder / MANIFEST_NAME
        try:
            content = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise CorpusError(f"{path} cannot be read: {error}. {_BUILD_AGAIN}") from error
        try:
            if content["format"] != _FORMAT:
                raise CorpusError(
                    f"{path} was written by a newer askline: format {content['format']}, and this "
                    f"one reads {_FORMAT}. Update askline."
                )
            shards = tuple(ShardInfo(**each) for each in content["shards"])
        except (KeyError, TypeError) as error:
            raise CorpusError(
                f"{path} is no manifest of shards: {error}. {_BUILD_AGAIN}"
            ) from error
        if not shards or any(Path(each.name).name != each.name for each in shards):
            raise CorpusError(f"{path} must name at least one folder beside it. {_BUILD_AGAIN}")
        return cls(shards)

    def to_json(self) -> str:
        """The content of the file."""
        shards = [asdict(each) for each in self.shards]
        return json.dumps({"format": _FORMAT, "shards": shards}, indent=1) + "\n"


_BUILD_AGAIN = "Build the shards again."


class ShardedStore:
    """
    The stores of all shards, read as one. It has the reading methods of `Store`.

    The id of a document is its id in its shard times the number of shards, plus the number of the
    shard. None stands for a shard that is missing.
    """

    def __init__(self, stores: Sequence[Store | None]) -> None:
        self._stores = list(stores)

    def number_of(self, shard: int, document_id: int) -> int:
        """The id of a document of a shard."""
        return document_id * len(self._stores) + shard

    def drop(self, shard: int) -> None:
        """Read without a shard from now on."""
        self._stores[shard] = None

    @property
    def present(self) -> list[int]:
        """The numbers of the shards that are read."""
        return [number for number, store in enumerate(self._stores) if store is not None]

    @property
    def identity(self) -> str:
        """The identities of all stores."""
        return "+".join(store.identity for _, store in self._present())

    @property
    def generation(self) -> int:
        """The number of changes of all stores; it only rises."""
        return sum(store.generation for _, store in self._present())

    def counts(self) -> tuple[int, int, int]:
        """Counts of readable documents, of their sentences, and of their characters."""
        counts = [store.counts() for _, store in self._present()]
        documents, sentences, characters = (sum(column) for column in zip(*counts, strict=True))
        return documents, sentences, characters

    def document_id(self, name: str) -> int | None:
        """The id of the document of that name."""
        for number, store in self._present():
            if (document_id := store.document_id(name)) is not None:
                return self.number_of(number, document_id)
        return None

    def document(self, document_id: int) -> DocumentHeader | None:
        """The header of a document; None if it has been removed. Its checksum is checked."""
        store, own = self._of(document_id)
        return store.document(own)

    def documents(self, document_ids: Iterable[int]) -> dict[int, DocumentHeader]:
        """The headers of documents by id, without those that have been removed; checked."""
        headers = {document_id: self.document(document_id) for document_id in document_ids}
        return {document_id: header for document_id, header in headers.items() if header}

    def passage_sentences(
        self, places: Sequence[tuple[int, int, int]]
    ) -> list[list[SentenceRecord]]:
        """The unchecked sentences of passages, each given by document, first and last sentence."""
        return [self.unchecked_sentences(*place) for place in places]

    def sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """The sentences `first` to `last` of a document, both included."""
        store, own = self._of(document_id)
        return store.sentences(own, first, last)

    def unchecked_sentences(self, document_id: int, first: int, last: int) -> list[SentenceRecord]:
        """Like `sentences`, but faster, and damaged sentences are returned too."""
        store, own = self._of(document_id)
        return store.unchecked_sentences(own, first, last)

    def row_at(self, document_id: int, offset: int) -> RowRecord | None:
        """The csv or jsonl row that contains a character of the original; None in other files."""
        store, own = self._of(document_id)
        return store.row_at(own, offset)

    def source_path(self, name: str) -> str | None:
        """The absolute path that a document was read from; None for a text."""
        return self._first(lambda store: store.source_path(name))

    def file_state(self, name: str) -> FileState | None:
        """The state in which the file of that name was last read; None if it is not stored."""
        return self._first(lambda store: store.file_state(name))

    def names(self) -> list[str]:
        """Names of all documents, sorted, unreadable files included."""
        return list(heapq.merge(*(store.names() for _, store in self._present())))

    def list_documents(self, *, after: str, limit: int) -> list[tuple[Any, ...]]:
        """Name, title, kind, unit, sentences, characters and problem of documents, by name."""
        pages = (store.list_documents(after=after, limit=limit) for _, store in self._present())
        return list(islice(heapq.merge(*pages, key=lambda row: row[0]), limit))

    def unreadable(self) -> list[tuple[str, int, str, NotReadReason]]:
        """Name, line, problem and reason of each file that could not be read."""
        return sorted(row for _, store in self._present() for row in store.unreadable())

    def skipped(self) -> list[SkippedRecord]:
        """What was left out when paths were added, by path, reason and kind."""
        return sorted(record for _, store in self._present() for record in store.skipped())

    def snapshot(self) -> AbstractContextManager[None]:
        """Shards do not change while they are read."""
        return nullcontext()

    def close(self) -> None:
        """Close all files."""
        for _, store in self._present():
            store.close()

    def _present(self) -> list[tuple[int, Store]]:
        return [(at, store) for at, store in enumerate(self._stores) if store is not None]

    def _of(self, document_id: int) -> tuple[Store, int]:
        """The store of a document, and its id there."""
        own, number = divmod(document_id, len(self._stores))
        store = self._stores[number]
        if store is None:
            raise CorpusError(f"The shard of document {document_id} is missing. Ask again.")
        return store, own

    def _first(self, read: Callable[[Store], _T | None]) -> _T | None:
        return next((found for _, store in self._present() if (found := read(store))), None)
