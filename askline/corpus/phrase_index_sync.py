"""
Phrase index sync: encodes the phrases of every passage of the store, once.

The phrase index is derived from the store and updated from it. Documents are encoded in the order
of their ids, which are never reused, so a stamp can record the progress: every document of the
store up to the id `until` is in the index. While phrases are encoded, no lock is held. A lock of
the phrase folder, not of the store, is held while they are written. A process that is killed loses
a few seconds of encoding.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorpusError
from ..phrases import PhraseIndex, PhraseModel
from .document_store import DocumentStore
from .lock import LOCK_NAME, writer_lock
from .passages import MAX_SENTENCE_CHARACTERS, split_passages
from .store import Store

__all__ = [
    "FORMAT",
    "PASSAGES_PER_BATCH",
    "PassageId",
    "PhraseIndexSync",
    "phrase_passages",
    "try_open_phrase_index",
]

FORMAT = 2
"""Raise this when passages change: an index of another format is rebuilt."""
PASSAGES_PER_BATCH = 128
"""Passages that are encoded before they are written: a few seconds of work."""
_LOCK_TIMEOUT_SECONDS = 60.0  # another process needs a second per batch, more to merge segments


class PassageId(NamedTuple):
    """Sentences `first` to `last` of a document; as a string, the name in the phrase index."""

    document_id: int
    first: int
    last: int

    @classmethod
    def parse(cls, name: str) -> PassageId:
        """From the form `document/first/last`."""
        return cls(*map(int, name.split("/")))

    def __str__(self) -> str:
        return "/".join(map(str, self))


class PhraseIndexSync:
    """
    Keeps the phrase index in a folder up to date with the store, with one model.

    `model_name` is written into the index, so that the next process loads the same model.
    """

    def __init__(self, store: Store, folder: Path, model: PhraseModel, model_name: str) -> None:
        self._store, self._folder = store, folder
        self._model_name = model_name
        self.model = model
        self._index: PhraseIndex | None = None

    def update(self, on_document: Callable[[], None] | None = None) -> PhraseIndex:
        """
        The index with all documents of the store.

        Missing phrases are encoded. An index that is damaged, or of another model or store, is
        rebuilt. In a read-only folder, an existing index is used as it is.
        """
        generation = self._store.generation
        index = self._usable_index()
        if index is not None and index.stamp["generation"] == generation:
            return index
        if index is not None and not os.access(self._folder, os.W_OK):
            return index
        return self._encode_missing(generation, on_document)

    @property
    def is_empty(self) -> bool:
        """Whether no phrases have been encoded yet."""
        return not self._index

    def is_superseded(self) -> bool:
        """Whether another process has rebuilt the index with another model."""
        if self._index is not None and self._index.is_current():
            return False
        index = try_open_phrase_index(self._folder)
        if index is None or index.stamp.get("store") != self._store.identity:
            return False
        return bool(index.stamp.get("model") != self.model.config.identity)

    def _usable_index(self) -> PhraseIndex | None:
        """The index of this store and model, reopened if another process has written to it."""
        if self._index is None or not self._index.is_current():
            index = try_open_phrase_index(self._folder)
            expected = self._stamp(0, 0)
            matches = index is not None and all(
                index.stamp.get(key) == expected[key] for key in ("format", "store", "model")
            )
            self._index = index if matches else None
        return self._index

    def _encode_missing(
        self, generation: int, on_document: Callable[[], None] | None
    ) -> PhraseIndex:
        self._create_folder()
        _, document_ids = self._store.changes(-1)
        with self._locked_index(create=True) as index:
            stored = set(document_ids)
            names = index.documents
            index.delete(name for name in names if PassageId.parse(name).document_id not in stored)
        done = until = int(index.stamp["until"])
        batch: list[tuple[str, str]] = []
        for document_id in document_ids:
            if document_id <= until:
                continue
            for place, text in phrase_passages(self._store, document_id):
                # An interrupted long document is partly in the index.
                if (name := str(place)) not in index:
                    batch.append((name, text))
                if len(batch) >= PASSAGES_PER_BATCH:
                    index = self._encode_batch(batch, done)
                    batch = []
            done = document_id
            if on_document is not None:
                on_document()
        self._encode_batch(batch, done)
        with self._locked_index() as index:
            index.delete([], stamp=self._stamp(int(index.stamp["until"]), generation))
        return index

    def _encode_batch(self, batch: Sequence[tuple[str, str]], done: int) -> PhraseIndex:
        """Encode passages and write them; `done` is the last document that is then complete."""
        encoded = self.model.encode_many([text for _, text in batch])
        with self._locked_index() as index:
            until = max(done, int(index.stamp["until"]))
            index.add(
                [
                    (name, text, phrases)
                    for (name, text), phrases in zip(batch, encoded, strict=True)
                ],
                stamp=self._stamp(until, -1),
            )
            index.compact()
        return index

    def _stamp(self, until: int, generation: int) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "store": self._store.identity,
            "model": self.model.config.identity,
            "home": self._model_name,
            "until": until,
            "generation": generation,
        }

    @contextmanager
    def _locked_index(self, *, create: bool = False) -> Iterator[PhraseIndex]:
        """The index under its lock; with `create`, a new one if there is no usable one."""
        with writer_lock(self._folder, timeout=_LOCK_TIMEOUT_SECONDS):
            index = self._usable_index()
            if index is None and not create:
                raise CorpusError(
                    f"{self._folder} was deleted while phrases were encoded, or another process "
                    "encodes them with another model. Try again when it has ended."
                )
            yield index or self._create_index()

    def _create_index(self) -> PhraseIndex:
        for entry in self._folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != LOCK_NAME:
                entry.unlink(missing_ok=True)
        self._index = PhraseIndex.open(self._folder, create=True)
        self._index.delete([], stamp=self._stamp(0, -1))
        return self._index

    def _create_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CorpusError(
                f"{self._folder} cannot be created: {error.strerror or error}."
            ) from error


def phrase_passages(
    store: DocumentStore, document_id: int, *, after: int = -1
) -> Iterator[tuple[PassageId, str]]:
    """The passages of a document whose phrases are encoded, those after the sentence `after`."""
    sentences = (
        sentence._replace(text=sentence.text[:MAX_SENTENCE_CHARACTERS])
        for sentence in store.iter_sentences(document_id, after + 1)
    )
    for first, last, text in split_passages(sentences):
        yield PassageId(document_id, first, last), text


def try_open_phrase_index(folder: Path) -> PhraseIndex | None:
    """The phrase index in a folder; None if it is missing or unusable."""
    try:
        return PhraseIndex.open(folder)
    except CorpusError:
        return None
