"""What a corpus knows of phrases: where they are kept, by which model, and how to look in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

from .store import Store

if TYPE_CHECKING:
    from .phrase_retrieval import PhraseIndexSync, PhraseRetriever

__all__ = [
    "PHRASES_FOLDER",
    "CorpusPhrases",
    "PhraseStatus",
]

PHRASES_FOLDER = "phrases"


class PhraseStatus(NamedTuple):
    """How many phrases there are, None for no index; its size; whether it has all of the store."""

    phrases: int | None
    bytes: int
    encoded: bool


class CorpusPhrases:
    """The phrases of a corpus: in its folder, or in a temporary one for a corpus in memory."""

    def __init__(self, store: Store, folder: Path | None) -> None:
        self._store = store
        self._folder = None if folder is None else folder / PHRASES_FOLDER
        self._clearing: finalize[..., CorpusPhrases] | None = None  # of a folder made for the time
        self._encoded: PhraseIndexSync | None = None

    def encode(
        self,
        model: str | os.PathLike[str] | None = None,
        on_document: Callable[[], None] | None = None,
    ) -> None:
        """Bring the index in step with the store; without a model, by that of last time."""
        self._by(model).current_search_index(on_document)

    def retriever(self) -> PhraseRetriever:
        """Finds sentences by their phrases, in step with the store as it is now."""
        from .phrase_retrieval import PhraseRetriever

        encoded = self._by(None)
        return PhraseRetriever(self._store, encoded.current_search_index(), encoded.model)

    def status(self) -> PhraseStatus:
        """What is there, looked up without changing any of it."""
        from .phrase_retrieval import try_open_phrase_index

        index = None if self._folder is None else try_open_phrase_index(self._folder)
        if index is None:
            return PhraseStatus(None, 0, False)
        stamp = index.stamp
        wanted = self._store.identity, self._store.generation
        is_whole = (stamp.get("store"), stamp.get("generation")) == wanted
        return PhraseStatus(len(index), index.bytes, is_whole)

    def close(self) -> None:
        """Let go of the files, and of the folder of a corpus in memory."""
        self._encoded = None
        if self._clearing is not None:
            self._clearing()
            self._folder = self._clearing = None

    def _by(self, model: str | os.PathLike[str] | None) -> PhraseIndexSync:
        from ..phrases import PhraseModel
        from .phrase_retrieval import PhraseIndexSync, try_open_phrase_index

        if self._encoded is None or model is not None or self._encoded.is_superseded():
            before = try_open_phrase_index(self._place())
            home = before.stamp.get("home") if before is not None else None
            if model is not None:
                home = os.path.abspath(os.path.expanduser(model))
            loaded = PhraseModel.load(home)
            self._encoded = PhraseIndexSync(self._store, self._place(), loaded, home)
        return self._encoded

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="askline-"))
            self._clearing = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder
