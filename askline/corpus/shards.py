"""
Sharded corpora: a folder of shards that is read as one corpus.

Each shard is an ordinary index folder. The manifest `shards.json` names them. It is written last
and replaced atomically, so readers see the old shards or the new ones. `shard_building.py` writes
both. `ShardedStorage` reads the storages of all shards as one, and `ShardedStore` their stores;
`merged_search.py` does the same for their search indexes.
"""

from __future__ import annotations

import heapq
import json
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import CorpusError, NotReadReason
from .corpus_phrases import CorpusPhrases, PhraseIndexStatus, choose_language
from .document_store import CorpusReader, DocumentStore
from .merged_search import MergedSearch
from .results import MissingShard, VerifyReport
from .schema import DocumentHeader, FileState, RowRecord, SentenceRecord, SkippedRecord
from .storage import MANIFEST_NAME, SHARD_FILE, FolderStorage, Phrases, Storage, StorageStatus
from .store import Store

if TYPE_CHECKING:  # phrases load numpy, ONNX and a model
    from .phrase_retrieval import MergedPhraseRetriever

__all__ = [
    "Manifest",
    "ShardInfo",
    "ShardedStorage",
    "ShardedStore",
    "merge_verify_reports",
]

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
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a folder; CorpusError if it cannot be read."""
        path = folder / MANIFEST_NAME
        try:
            content = json.loads(path.read_bytes())
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


class ShardedStore(CorpusReader):
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


class ShardedStorage(Storage):
    """
    The shards of a folder. They can be read and verified, and not changed.

    `shards` has the shards that are there, by number, out of `total`.
    """

    def __init__(
        self,
        folder: Path,
        shards: dict[int, FolderStorage],
        total: int,
        missing: Sequence[MissingShard] = (),
        *,
        allow_partial: bool = False,
    ) -> None:
        self.folder = folder
        self.location, self.place = str(folder.absolute()), str(folder)
        self.allow_partial = allow_partial
        self.missing_shards = tuple(missing)
        self._shards = shards
        self._total = total
        self._merged: MergedSearch | None = None
        numbers = range(total)
        self.store: ShardedStore = ShardedStore(
            [shards[number].store if number in shards else None for number in numbers]
        )
        self._phrases = _ShardedPhrases(self.store, shards)

    @classmethod
    def open(cls, folder: Path, *, check: bool, allow_partial: bool) -> ShardedStorage:
        """
        The shards that the manifest of a folder names.

        CorpusError that names those that are missing or damaged, or with `allow_partial`, if all of
        them are.
        """
        manifest = Manifest.read(folder)
        shards: dict[int, FolderStorage] = {}
        missing: list[MissingShard] = []
        for number, info in enumerate(manifest.shards):
            try:
                shards[number] = _open_shard(folder / info.name, info, check=check)
            except CorpusError as error:
                missing.append(MissingShard(info.name, str(error)))
        total = len(manifest.shards)
        if missing and (not allow_partial or not shards):
            for shard in shards.values():
                shard.close()
            raise _missing_shards_error(folder, missing, total)
        return cls(folder, shards, total, missing, allow_partial=allow_partial)

    @property
    def parts(self) -> Sequence[Storage]:
        """The storages of all shards that are there."""
        return list(self._shards.values())

    @property
    def phrases(self) -> Phrases:
        """The phrases of all shards."""
        return self._phrases

    def search_index(self, *, rebuild: bool = False) -> MergedSearch:
        """The indexes of all shards as one; with `rebuild`, damaged ones are built anew."""
        indexes = {
            number: shard.search_index(rebuild=rebuild and not shard.is_search_intact())
            for number, shard in self._shards.items()
        }
        if self._merged is None or self._merged.indexes != indexes:
            self._merged = MergedSearch(indexes, self.store.number_of)
        return self._merged

    def writing(self, *, repairing: bool = False) -> AbstractContextManager[DocumentStore]:  # noqa: ARG002
        """CorpusError: shards cannot be changed."""
        raise _read_only_error(self.folder)

    def repair_search(self, *, rebuild: bool) -> bool:
        """Rebuild the indexes that are damaged, or with `rebuild` all of them."""
        repaired = [shard.repair_search(rebuild=rebuild) for shard in self._shards.values()]
        return any(repaired)

    def status(self) -> StorageStatus:
        """The state of all shards together."""
        known = [shard.status() for shard in self._shards.values()]
        return StorageStatus(
            searchable=all(each.searchable for each in known),
            store_bytes=sum(each.store_bytes for each in known),
            search_bytes=sum(each.search_bytes for each in known),
            writer=next((each.writer for each in known if each.writer), None),
        )

    def drop_damaged(self) -> bool:
        """
        Go on without shards that were damaged after they were opened; False if there are none.

        CorpusError that names them without `allow_partial`, and if no shard is left.
        """
        damaged = {at: shard.store.quick_problem() for at, shard in self._shards.items()}
        damaged = {at: problem for at, problem in damaged.items() if problem}
        missing = [
            MissingShard(Path(self._shards[at].place or "").name, f"It is damaged: {problem}")
            for at, problem in damaged.items()
        ]
        if missing and (not self.allow_partial or len(damaged) == len(self._shards)):
            raise _missing_shards_error(self.folder, [*self.missing_shards, *missing], self._total)
        for number in damaged:
            self.store.drop(number)
            del self._shards[number]
        self.missing_shards += tuple(missing)
        return bool(missing)

    def close(self) -> None:
        """Close the files of all shards."""
        self._merged = None
        for shard in self._shards.values():
            shard.close()


class _ShardedPhrases:
    """The phrase indexes of all shards as one."""

    def __init__(self, store: ShardedStore, shards: dict[int, FolderStorage]) -> None:
        self._store, self._shards = store, shards

    def encode(
        self,
        model: str | os.PathLike[str] | None = None,
        on_document: Callable[[], None] | None = None,
    ) -> None:
        """Update the index of each shard, all with one model."""
        if model is None:
            model = self._common_model()
        for phrases in self._all():
            phrases.encode(model, on_document)

    def retriever(self) -> MergedPhraseRetriever:
        """A retriever over the indexes of all shards."""
        from .phrase_retrieval import MergedPhraseRetriever

        if len({phrases.model_name() for phrases in self._all()}) > 1:
            self.encode()  # shards that were written one by one may have different models
        return MergedPhraseRetriever(self._store, [each.retriever() for each in self._all()])

    def status(self) -> PhraseIndexStatus:
        """The state of all indexes together."""
        known = [phrases.status() for phrases in self._all()]
        counts = [each.phrases for each in known]
        return PhraseIndexStatus(
            None if None in counts else sum(count or 0 for count in counts),
            sum(each.size_bytes for each in known),
            all(each.is_current for each in known),
        )

    def close(self) -> None:
        """Close all indexes."""
        for phrases in self._all():
            phrases.close()

    def _common_model(self) -> str:
        """The model of all shards that have phrases, or else the one for their documents."""
        names = {phrases.model_name() for phrases in self._all()} - {None}
        if len(names) == 1 and (name := names.pop()):
            return name
        return choose_language([shard.store for shard in self._shards.values()])

    def _all(self) -> list[CorpusPhrases]:
        return [shard.phrases for shard in self._shards.values()]


def _open_shard(folder: Path, info: ShardInfo, *, check: bool) -> FolderStorage:
    """CorpusError if the shard is not what the manifest says."""
    if not folder.is_dir():
        raise CorpusError("The folder is missing.")
    shard = FolderStorage.open(folder, must_exist=True, check=check)
    if shard.store.identity != info.identity:
        shard.close()
        raise CorpusError(
            "It belongs to another build: its store is not the one that shards.json names."
        )
    return shard


def _missing_shards_error(folder: Path, missing: Sequence[MissingShard], total: int) -> CorpusError:
    """The error for shards that cannot be read."""
    problems = " ".join(f"{each.name}: {each.problem}" for each in missing)
    return CorpusError(
        f"{len(missing)} of {total} shards of {folder} cannot be read. {problems} Restore them, or "
        "build them again. To answer without them: Corpus.open(..., allow_partial=True), or "
        "--allow-partial."
    )


def _read_only_error(folder: Path) -> CorpusError:
    """The error for a change of a sharded corpus."""
    return CorpusError(
        f"{folder} is a sharded index, which cannot be changed. Build it again from all documents: "
        f"askline index PATH... --shards N --out {shlex.quote(str(folder))}. Shards whose files "
        "have not changed are kept."
    )


def merge_verify_reports(reports: Sequence[VerifyReport]) -> VerifyReport:
    """The reports of all shards together."""
    return VerifyReport(
        documents=sum(each.documents for each in reports),
        damaged=tuple(name for each in reports for name in each.damaged),
        restored=tuple(name for each in reports for name in each.restored),
        lost=tuple(name for each in reports for name in each.lost),
        checksums_added=sum(each.checksums_added for each in reports),
        store_rebuilt=any(each.store_rebuilt for each in reports),
        search_rebuilt=any(each.search_rebuilt for each in reports),
        seconds=sum(each.seconds for each in reports),
    )
