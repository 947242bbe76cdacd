"""The phrases of a corpus: where their index is, which model encodes them, and how to search."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

from .store import Store

# The phrase modules are imported when they are used: they load numpy, ONNX and a model.
if TYPE_CHECKING:
    from .phrase_index_sync import PhraseIndexSync
    from .phrase_retrieval import PhraseRetriever

__all__ = [
    "PHRASES_FOLDER",
    "CorpusPhrases",
    "PhraseIndexStatus",
]

PHRASES_FOLDER = "phrases"


class PhraseIndexStatus(NamedTuple):
    """The state of the phrase index of a corpus."""

    phrases: int | None
    """The number of phrases; None if there is no index."""
    size_bytes: int
    is_current: bool
    """Whether the index contains all changes of the store."""


class CorpusPhrases:
    """The phrase index of a corpus: in its folder, or in a temporary one for memory."""

    def __init__(self, store: Store, folder: Path | None) -> None:
        self._store = store
        self._folder = None if folder is None else folder / PHRASES_FOLDER
        self._delete_temporary: finalize[..., CorpusPhrases] | None = None
        self._sync: PhraseIndexSync | None = None

    def encode(
        self,
        model: str | os.PathLike[str] | None = None,
        on_document: Callable[[], None] | None = None,
    ) -> None:
        """Update the index from the store; without `model`, with the model used last."""
        self._sync_with(model).update(on_document)

    def retriever(self) -> PhraseRetriever:
        """A retriever over an index that is up to date with the store."""
        from .phrase_retrieval import PhraseRetriever

        sync = self._sync_with(None)
        return PhraseRetriever(self._store, sync.update(), sync.model)

    def status(self) -> PhraseIndexStatus:
        """The current state; nothing is changed."""
        from .phrase_index_sync import try_open_phrase_index

        index = None if self._folder is None else try_open_phrase_index(self._folder)
        if index is None:
            return PhraseIndexStatus(None, 0, False)
        stamp = index.stamp
        current = self._store.identity, self._store.generation
        is_current = (stamp.get("store"), stamp.get("generation")) == current
        return PhraseIndexStatus(len(index), index.size_bytes, is_current)

    def close(self) -> None:
        """Close the index, and delete the temporary folder of a corpus in memory."""
        self._sync = None
        if self._delete_temporary is not None:
            self._delete_temporary()
            self._folder = self._delete_temporary = None

    def _sync_with(self, model: str | os.PathLike[str] | None) -> PhraseIndexSync:
        from ..phrases import PhraseModel
        from .phrase_index_sync import PhraseIndexSync, try_open_phrase_index

        if self._sync is None or model is not None or self._sync.is_superseded():
            folder = self._index_folder()
            index = try_open_phrase_index(folder)
            model_folder = index.stamp.get("home") if index is not None else None
            if model is not None:
                model_folder = os.path.abspath(os.path.expanduser(model))
            loaded = PhraseModel.load(model_folder)
            self._sync = PhraseIndexSync(self._store, folder, loaded, model_folder)
        return self._sync

    def _index_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="askline-"))
            self._delete_temporary = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder
