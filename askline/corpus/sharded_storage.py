"""The storage of a sharded corpus: the storages of all shards, read as one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CorpusError
from .corpus_phrases import CorpusPhrases, PhraseIndexStatus, choose_language
from .document_store import DocumentStore
from .folder_storage import FolderStorage
from .merged_search import MergedSearch
from .results import MissingShard, VerifyReport
from .shards import Manifest, ShardedStore, ShardInfo
from .storage import Phrases, Storage, StorageStatus

if TYPE_CHECKING:  # phrases load numpy, ONNX and a model
    from .phrase_retrieval import MergedPhraseRetriever

__all__ = ["ShardedStorage", "merge_verify_reports"]


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
    def open(
        cls, folder: Path, manifest: Manifest, *, check: bool, allow_partial: bool
    ) -> ShardedStorage:
        """
        The shards that the manifest names.

        CorpusError that names those that are missing or damaged, or with `allow_partial`, if all of
        them are.
        """
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
