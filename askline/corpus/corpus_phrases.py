"""
The phrases of a corpus: where their index is, which model encodes them, and how to search.

All phrases of a corpus are encoded by one model, since only vectors of one model can be compared.
It is the model that was named, or else the shipped one for the language of most documents. An index
records the name of its model, which is the language of a shipped one or the path of a folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

from ..text.language import detect_language
from .document_store import DocumentStore
from .store import Store

# The phrase modules are imported when they are used: they load numpy, ONNX and a model.
if TYPE_CHECKING:
    from ..phrases import PhraseModel
    from .phrase_index_sync import PhraseIndexSync
    from .phrase_retrieval import PhraseRetriever

__all__ = [
    "PHRASES_FOLDER",
    "CorpusPhrases",
    "PhraseIndexStatus",
    "choose_language",
    "load_phrase_model",
    "phrase_model_name",
]

PHRASES_FOLDER = "phrases"
_SAMPLED_DOCUMENTS = 20
_SAMPLED_SENTENCES = 20  # of each of them, more than the language is detected from


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

    def model_name(self) -> str | None:
        """The name of the model of the index; None if there are no phrases yet."""
        from .phrase_index_sync import try_open_phrase_index

        index = None if self._folder is None else try_open_phrase_index(self._folder)
        return (index.stamp.get("home") or "en") if index else None

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
        from .phrase_index_sync import PhraseIndexSync

        sync = self._sync
        if sync is None or model is not None or sync.is_empty or sync.is_superseded():
            folder = self._index_folder()
            if model is not None:
                name = phrase_model_name(model)
            else:
                name = self.model_name() or choose_language([self._store])
            sync = PhraseIndexSync(self._store, folder, load_phrase_model(name), name)
            self._sync = sync
        return sync

    def _index_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="askline-"))
            self._delete_temporary = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder


def phrase_model_name(model: str | os.PathLike[str]) -> str:
    """The name of a model that was given: a language of a shipped one, or an absolute path."""
    name = os.fspath(model)
    return name if name in _shipped_languages() else os.path.abspath(os.path.expanduser(name))


def load_phrase_model(name: str) -> PhraseModel:
    """The model of that name."""
    from ..phrases import PhraseModel

    if name in _shipped_languages():
        return PhraseModel.load(language=name)
    return PhraseModel.load(name)


def choose_language(stores: Sequence[DocumentStore]) -> str:
    """
    The language whose shipped model encodes the documents of all stores.

    English, unless more than half of a sample of the documents are in another language with a
    model.
    """
    detected = [
        detect_language(
            sentence.text
            for sentence in islice(store.iter_sentences(document_id), _SAMPLED_SENTENCES)
        )
        for store in stores
        for document_id in store.spread_ids(_SAMPLED_DOCUMENTS)
    ]
    others = (code for code in _shipped_languages() if 2 * detected.count(code) > len(detected))
    return next(others, "en")


def _shipped_languages() -> tuple[str, ...]:
    from ..models.folder import SHIPPED_LANGUAGES  # it loads numpy

    return SHIPPED_LANGUAGES
