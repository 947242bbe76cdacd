"""
Verification of a whole store: find damaged documents, and read their files again.

A damaged document whose file is gone, or that was a text, stays in the store as an unreadable one,
so that its id is known and adding it again restores it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from ..text.readers import FileSelection
from .document_records import READER_VERSION
from .document_store import DocumentStore
from .ingest import Ingestion
from .schema import DocumentRecord

__all__ = ["StoreVerification", "verify_store"]

_LOST = "It was damaged in the index, and there is no file to read again. Add it again."


class StoreVerification(NamedTuple):
    """What was found in the store, and what was done about it."""

    documents: int
    damaged: list[str]
    restored: list[str]
    checksums_added: int
    rebuilt: bool


class _Origin(NamedTuple):
    name: str
    path: str | None
    is_intact: bool


def verify_store(
    store: DocumentStore, on_document: Callable[[], None] | None = None
) -> StoreVerification:
    """
    Check every document against its checksums, and read the files of damaged ones again.

    Documents of earlier versions, which have no checksums, get them: their files are read again,
    and those without a file are taken as they are. Needs the writer lock. `on_document` is called
    after each document.
    """
    intact: list[int] = []
    unchecked: list[int] = []
    damaged: dict[int, _Origin] = {}
    is_sound = store.has_sound_structure()
    for document_id in store.document_ids():
        state = store.check_document(document_id)
        if state == "damaged":
            damaged[document_id] = _Origin(*store.origin(document_id))
        else:
            (intact if state == "intact" else unchecked).append(document_id)
        if on_document is not None:
            on_document()
    if not is_sound:
        store.rebuild(sorted(intact + unchecked))
    elif damaged:
        store.discard(list(damaged))
    if lost := [_lost_record(each) for each in damaged.values() if each.is_intact]:
        store.put(lost)
    files = [each.path for each in damaged.values() if each.path and os.path.isfile(each.path)]
    _add_checksums(store, unchecked)
    added = _read_again(store, files)
    names = [each.name for each in damaged.values()]
    restored = [each.name for each in damaged.values() if each.path in added]
    total = len(intact) + len(unchecked) + len(damaged)
    return StoreVerification(total, names, restored, len(unchecked), not is_sound)


def _lost_record(origin: _Origin) -> DocumentRecord:
    return DocumentRecord(
        origin.name,
        sha256="",
        reader_version=READER_VERSION,
        is_file=origin.path is not None,
        path=origin.path,
        problem=_LOST,
    )


def _add_checksums(store: DocumentStore, document_ids: list[int]) -> None:
    """Read the files of unchecked documents again; take the others as they are."""
    if not document_ids:
        return
    paths = [store.source_path(store.origin(each)[0]) for each in document_ids]
    _read_again(store, [path for path in paths if path and os.path.isfile(path)], force=True)
    remaining = set(store.document_ids())
    for document_id in document_ids:
        if document_id in remaining:  # a document that was read again has a new id
            store.add_checksums(document_id)
    store.finish_adding_checksums()


def _read_again(store: DocumentStore, paths: list[str], *, force: bool = False) -> set[str]:
    """Add files again; with `force`, also unchanged ones. Returns the paths that could be read."""
    if not paths:
        return set()
    if force:
        store.forget_states(paths)
    # Links are followed, because a file that was read through one was accepted before.
    Ingestion(store, None, selection=FileSelection(everything=True, follow_links=True)).add_paths(
        paths
    )
    return {path for path in paths if (file := store.file_at(path)) and not file[1].problem}
