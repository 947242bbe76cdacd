"""Keeping the search index in step with the store, without anybody having to ask for it."""

from __future__ import annotations

from pathlib import Path

from ..errors import CorpusError
from .lock import BusyError, writing
from .search import SearchIndex
from .store import Store

__all__ = ["SEARCH_NAME", "follow", "in_step"]

SEARCH_NAME = "search"


def in_step(
    store: Store, folder: Path | None, search: SearchIndex | None, *, rebuild: bool = False
) -> SearchIndex:
    """
    A search index that agrees with the store.

    One that is behind is brought up; one that is missing or damaged is built anew, and so is any
    with `rebuild`. Where another process is writing, an index that is merely behind is used as it
    is; where the folder may not be written, one is built in memory.
    """
    wanted = (store.identity, store.generation)
    if search is not None and not rebuild and search.stamp() == wanted:
        return search
    if folder is None:
        return _followed(search if search and not rebuild else SearchIndex.in_memory(), store)
    search = None if rebuild else SearchIndex.open(folder / SEARCH_NAME)
    stamp = search.stamp() if search is not None else None
    if search is not None and stamp == wanted:
        return search
    try:
        with writing(folder):
            return follow(store, folder, search, rebuild=rebuild)
    except BusyError:
        if search is not None and stamp is not None and stamp[0] == wanted[0]:
            return search
    except CorpusError:
        pass  # no room, or no permission
    return _followed(SearchIndex.in_memory(), store)


def follow(
    store: Store, folder: Path, search: SearchIndex | None = None, *, rebuild: bool = False
) -> SearchIndex:
    """
    Bring the folder's index up, or build it anew; wants the writer lock.

    One that refuses to be brought up is built anew too.
    """
    search = search or SearchIndex.open(folder / SEARCH_NAME)
    usable = not rebuild and search is not None and search.stamp() is not None
    try:
        if search is None or not usable:
            search = SearchIndex.create(folder / SEARCH_NAME)
        search.follow(store)
    except CorpusError:
        if not usable:
            raise
        search = SearchIndex.create(folder / SEARCH_NAME)
        search.follow(store)
    store.forget_removals(store.generation)
    return search


def _followed(search: SearchIndex, store: Store) -> SearchIndex:
    search.follow(store)
    return search
