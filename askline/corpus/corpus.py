"""A corpus: documents that can be added, removed and asked."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ..errors import CorpusError, Problem
from ..rankers.base import Ranker
from ..rankers.spec import load
from .ask import DEFAULT_BLEND, DEFAULT_RANKER, DEFAULT_RETRIEVED, answer
from .corpus_phrases import PHRASES_FOLDER, CorpusPhrases
from .ingest import Ingestion, OnFile, PathInput, TextInput, parse_inputs, parse_paths
from .lock import LOCK_NAME, lock_holder, writing
from .results import AddReport, Answers, CorpusStatus, DocumentInfo, DocumentSentence
from .retrieval import LexicalRetriever, Retriever
from .search_index import SEARCH_FOLDER, SearchIndex, current_search_index, follow
from .storage_errors import SearchIndexDamagedError
from .store import Store

__all__ = ["Corpus"]

STORE_NAME = "store.sqlite"
_STORE_FILES = {STORE_NAME, f"{STORE_NAME}-wal", f"{STORE_NAME}-shm"}
_OURS = {*_STORE_FILES, LOCK_NAME, SEARCH_FOLDER, PHRASES_FOLDER}

_PATIENCE_SECONDS = 2.0  # enough for one who only brings the search index up to date


class Corpus:
    """
    Made by `open` or `in_memory`.

    One process writes at a time; any number of threads and processes ask meanwhile. A process that
    is killed loses nothing that was reported.
    """

    def __init__(self, store: Store, folder: Path | None, ranker: str | Ranker | None) -> None:
        self._store = store
        self._folder = folder
        self._ranker = ranker
        self._search: SearchIndex | None = None
        self._phrases = CorpusPhrases(store, folder)

    @classmethod
    def in_memory(cls, *, ranker: str | Ranker | None = DEFAULT_RANKER) -> Corpus:
        """A corpus that goes with its process."""
        return cls(Store.in_memory(), None, ranker)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        ranker: str | Ranker | None = DEFAULT_RANKER,
        must_exist: bool = False,
    ) -> Corpus:
        """The corpus in a folder; a new one where the folder is missing or empty."""
        path = Path(folder).expanduser()
        store = None
        if (path / STORE_NAME).exists():
            store = Store.open(path / STORE_NAME, may_migrate=False)
        if store is None:
            _prepare(path, must_exist=must_exist)
            with writing(path, patience=_PATIENCE_SECONDS):
                store = Store.open(path / STORE_NAME, may_migrate=True)
        assert store is not None  # it has been migrated
        return cls(store, path, ranker)

    def add(
        self,
        source: PathInput | TextInput,
        *,
        on_file: OnFile | None = None,
        only: bool = False,
    ) -> AddReport:
        """
        Add files and folders by their paths, or texts with ids of your own.

        Texts are a mapping or any iterable of (id, text), which is taken in as it comes; a text
        with a known id takes the place of the old one. Among paths, `-` is standard input; files
        that have not changed since are not read again, and files that have gone from an added
        folder are removed. `only` removes everything that is not in the source.

        `on_file` is called with the report of each file or text once it is stored for good. What
        is wrong with a file is in the reports, and the others go on.
        """
        given = parse_inputs(source)
        with self._writing():
            adding = Ingestion(self._store, on_file)
            if isinstance(given, list):
                adding.paths(given, only=only)
            else:
                adding.texts(given, only=only)
        return adding.report()

    def add_texts(self, texts: TextInput, *, on_file: OnFile | None = None) -> AddReport:
        """`add` for texts alone."""
        return self.add(texts, on_file=on_file)

    def remove(self, names: PathInput) -> list[str]:
        """Take out texts by id, files by path, folders with all in them; gives what was there."""
        with self._writing():
            found = sorted({name for given in parse_paths(names) for name in self._named(given)})
            if found:
                self._store.remove(found)
        return found

    def remove_document(self, name: str) -> bool:
        """Take out the document of just that name; whether it was there."""
        with self._writing():
            known = self._store.known(name) is not None
            if known:
                self._store.remove([name])
        return known

    def documents(self, *, after: str = "", limit: int = 100) -> list[DocumentInfo]:
        """At most `limit` documents in the order of their names, beginning behind `after`."""
        return [DocumentInfo(*row) for row in self._store.listing(after=after, limit=limit)]

    def sentences(
        self, name: str, first: int = 0, last: int = 2**62
    ) -> list[DocumentSentence] | None:
        """The sentences of a document by their ordinals, both included; None for no document."""
        number = self._store.number(name)
        if number is None:
            return None
        return [
            DocumentSentence(
                row.ordinal, row.text, row.first, row.last, row.place, row.heading, row.is_heading
            )
            for row in self._store.sentences(number, first, last)
        ]

    def ask(
        self,
        question: str,
        *,
        top_k: int = 5,
        retrieved: int = DEFAULT_RETRIEVED,
        blend: float = DEFAULT_BLEND,
        phrases: bool = False,
    ) -> Answers:
        """
        The best `top_k` sentences, best first.

        `retrieved` sentences are found by their words and handed to the ranker, whose scores and
        the retrieval's are added with the weight `blend` for the latter; where there is no ranker,
        they come in the order of the retrieval. With `phrases`, sentences are also found by the
        phrases in them (`encode_phrases`), and the best of both are handed on.
        """
        ask = partial(answer, question, top_k=top_k, retrieved=retrieved, blend=blend)
        if isinstance(self._ranker, str):
            self._ranker = load(self._ranker)
        try:
            return ask(self.retriever(phrases=phrases), self._ranker)
        except SearchIndexDamagedError:
            self._search = current_search_index(self._store, self._folder, None, rebuild=True)
            return ask(self.retriever(phrases=phrases), self._ranker)

    def nearest(self, question: str, *, top_k: int = 5) -> Answers:
        """The sentences of the nearest phrases, in their order; nothing else judges them."""
        return answer(
            question,
            self._phrases.retriever(),
            top_k=top_k,
            retrieved=max(top_k, DEFAULT_RETRIEVED),
        )

    def retriever(self, *, phrases: bool = False) -> Retriever:
        """What `ask` finds sentences with, in step with the store as it is now."""
        self._search = current_search_index(self._store, self._folder, self._search)
        words = LexicalRetriever(self._store, self._search)
        if not phrases:
            return words
        from .phrase_retrieval import HybridRetriever

        return HybridRetriever(words, self._phrases.retriever())

    def encode_phrases(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        on_document: Callable[[], None] | None = None,
    ) -> None:
        """
        Encode the phrases of all documents that have not been, for `nearest` and `ask`.

        `model` is a folder that `askline train phrases` wrote; without it, that of last time, or
        the one that comes with askline. Both ways of asking do this first. It may be stopped at any
        time and goes on from there; `on_document` is called behind each document.
        """
        self._phrases.encode(model, on_document)

    def status(self) -> CorpusStatus:
        """What is there, looked up without changing any of it."""
        documents, sentences, characters = self._store.counts()
        folder = self._folder
        search = self._search if folder is None else SearchIndex.open(folder / SEARCH_FOLDER)
        stamp = search.stamp() if search is not None else None
        generation, phrases = self._store.generation, self._phrases.status()
        return CorpusStatus(
            folder=None if folder is None else str(folder),
            documents=documents,
            sentences=sentences,
            characters=characters,
            unreadable=tuple(Problem(*row) for row in self._store.unreadable()),
            generation=generation,
            searchable=stamp == (self._store.identity, generation),
            store_bytes=_bytes(folder, f"{STORE_NAME}*"),
            search_bytes=_bytes(folder, f"{SEARCH_FOLDER}/*"),
            writer=None if folder is None else lock_holder(folder),
            phrases=phrases.phrases,
            phrase_bytes=phrases.bytes,
            encoded=phrases.encoded,
        )

    def close(self) -> None:
        """Let go of the files. Nothing is lost by not calling this."""
        self._search = None
        self._phrases.close()
        self._store.close()

    def __repr__(self) -> str:
        return f"<Corpus in {self._folder or 'memory'}>"

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the writer lock; afterwards the search index has what the store has."""
        if self._folder is None:
            yield
            return
        with writing(self._folder, patience=_PATIENCE_SECONDS):
            yield
            self._search = follow(self._store, self._folder)

    def _named(self, given: str) -> list[str]:
        """The documents that an id or a path stands for."""
        path = os.path.abspath(os.path.expanduser(given))
        inside = self._store.names(prefix=os.path.join(path, ""))
        return [name for name in (given, path) if self._store.known(name)] + inside


def _prepare(folder: Path, *, must_exist: bool) -> None:
    """Make the folder, unless there is something else in it."""
    if must_exist:
        raise CorpusError(
            f"No index in {folder}. "
            f"Make one: askline index PATH... --out {shlex.quote(str(folder))}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = sorted({entry.name for entry in folder.iterdir()} - _OURS)
    except OSError as error:
        raise CorpusError(f"{folder} cannot hold an index: {error.strerror or error}.") from error
    if strange:
        raise CorpusError(
            f"{folder} holds no index but other things, such as {strange[0]}. Name a folder that "
            "is empty or new."
        )


def _bytes(folder: Path | None, pattern: str) -> int:
    if folder is None:
        return 0
    return sum(file.stat().st_size for file in folder.glob(pattern) if file.is_file())
