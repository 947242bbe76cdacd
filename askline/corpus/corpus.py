"""`Corpus`: a collection of documents that can be added, removed, and asked questions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CorpusError, InputError, Problem
from ..text.readers.limits import DEFAULT_LIMITS, ReadLimits
from .ask_defaults import DEFAULT_BLEND, DEFAULT_RANKER, DEFAULT_RETRIEVED
from .document_store import DocumentStore
from .storage import MANIFEST_NAME, FolderStorage, Phrases, Storage, is_postgres_url
from .storage_errors import SearchIndexDamagedError

# What a command does not need is not loaded: rankers, retrieval and phrases load numpy.
if TYPE_CHECKING:
    from ..rankers.base import Ranker
    from .ingest import OnFile, PathInput, Share, TextInput
    from .phrase_retrieval import MergedPhraseRetriever, PhraseRetriever
    from .results import (
        AddReport,
        Answers,
        CorpusStatus,
        DocumentInfo,
        DocumentSentence,
        MissingShard,
        NotReadFiles,
        VerifyReport,
    )
    from .retrieval import Retriever

__all__ = ["Corpus"]


class Corpus:
    """
    A collection of documents, in a folder or a database (`open`) or in memory (`in_memory`).

    In a folder, one process writes at a time; any number of threads and processes ask in the
    meantime. In a PostgreSQL database, any number of machines write and ask. A process that is
    killed loses nothing that was reported. A corpus that was opened can be pickled: the copy opens
    the same place with the same ranker.

    A folder of shards is one corpus too, with the scores of a single index. It can be asked, and
    not changed.
    """

    def __init__(self, storage: Storage, ranker: str | Ranker | None) -> None:
        self._storage = storage
        self._store = storage.store
        self._ranker = ranker

    @classmethod
    def in_memory(cls, *, ranker: str | Ranker | None = DEFAULT_RANKER) -> Corpus:
        """An empty corpus in memory, which ends with its process."""
        return cls(FolderStorage.in_memory(), ranker)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        ranker: str | Ranker | None = DEFAULT_RANKER,
        must_exist: bool = False,
        check: bool = True,
        allow_partial: bool = False,
    ) -> Corpus:
        """
        The corpus in a folder; a new one if the folder is missing or empty.

        `folder` may also be the URL of a database, `postgresql://HOST/DATABASE?schema=NAME`, where
        the corpus is in tables of that schema (by default `askline`), which are created if they are
        missing.

        An existing one is checked for damage, which takes milliseconds: all pages of a small store,
        or a sample of documents of a large one. CorpusError if it is damaged; with `check=False` it
        is opened all the same, for `verify`.

        `ranker` is a ranker or its spec text, which is loaded at the first question. With None,
        answers are in the order of the retrieval.

        The folder may be one of shards (`build_shards`). CorpusError if one of them is missing or
        damaged; with `allow_partial`, the others are asked, and the answers say what is missing.
        """
        if not isinstance(folder, (str, os.PathLike)):
            raise InputError(f"folder must be a path or a URL, got {folder!r}.")
        if is_postgres_url(folder):
            from .postgres_store import PostgresStorage

            return cls(PostgresStorage.open(str(folder), must_exist=must_exist), ranker)
        path = Path(folder).expanduser()
        if os.path.exists(path / MANIFEST_NAME):
            from .shards import ShardedStorage

            return cls(ShardedStorage.open(path, check=check, allow_partial=allow_partial), ranker)
        return cls(FolderStorage.open(folder, must_exist=must_exist, check=check), ranker)

    def add(
        self,
        source: PathInput | TextInput,
        *,
        on_file: OnFile | None = None,
        only: bool = False,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        no_ignore: bool = False,
        columns: Sequence[str] = (),
        follow_links: bool = False,
        read_seconds: float = DEFAULT_LIMITS.seconds,
        read_megabytes: int = DEFAULT_LIMITS.megabytes,
        share: Share | None = None,
    ) -> AddReport:
        """
        Add files and folders by their paths, or texts with ids of your own.

        The id of a file is its path relative to the folder; with several folders, after the
        folder's own name. It stays the same as long as the file is stored.

        Texts are a mapping or any iterable of (id, text), which is read as a stream; a text with a
        known id replaces the old one. Among paths, `-` is standard input. Files that have not
        changed are not read again, and files that are gone from an added folder are removed. With
        `only`, everything that is not in the source is removed. An id with a control character or a
        line break is an InputError, and a file with such a name is reported as failed.

        In folders, hidden files, installed packages and what a `.gitignore` lists are left out,
        unless `no_ignore` is true, and so are files without text, such as pictures. `include` and
        `exclude` are patterns as in a `.gitignore`: with `include`, only files that match one of
        them are read, and files that match one of `exclude` are not. `columns` are the columns with
        the text of csv, jsonl and spreadsheet files. What was not read is counted in the report.

        `on_file` is called with the report of each file or text once it is stored durably. A file
        that cannot be read is reported and does not stop the others. Files are read in child
        processes; one that takes longer than `read_seconds` (30) or more memory than
        `read_megabytes` (1,024) is reported as failed, and is read again when the file or a limit
        has changed. A link that leads out of the given folders is reported as failed, unless
        `follow_links` is true. With `share`, only the files of one shard are added
        (`build_shards`).
        """
        from ..text.readers.folders import FileSelection
        from .ingest import Ingestion, parse_inputs

        inputs = parse_inputs(source)
        limits = ReadLimits(read_seconds, read_megabytes)
        selection = FileSelection(
            include=_strings(include, "include"),
            exclude=_strings(exclude, "exclude"),
            everything=no_ignore,
            follow_links=follow_links,
        )
        with self._storage.writing() as store:
            ingestion = Ingestion(
                store,
                on_file,
                limits=limits,
                selection=selection,
                columns=_strings(columns, "columns"),
                share=share,
            )
            if isinstance(inputs, list):
                ingestion.add_paths(inputs, only=only)
            else:
                ingestion.add_texts(inputs, only=only)
        return ingestion.report()

    def add_texts(self, texts: TextInput, *, on_file: OnFile | None = None) -> AddReport:
        """`add` for texts only."""
        return self.add(texts, on_file=on_file)

    def remove(self, names: PathInput) -> list[str]:
        """
        Remove texts by id, files by path, and folders with all their files.

        Returns the names of the documents that were removed, sorted.
        """
        from .document_records import absolute_path
        from .ingest import SkippedCounts, parse_paths

        paths = parse_paths(names)
        with self._storage.writing() as store:
            found = sorted({name for given in paths for name in _matching(store, given)})
            if found:
                store.remove(found)
            counts = SkippedCounts(absolute_path(given) for given in paths)
            store.replace_skipped(counts.merged(store.skipped()))
        return found

    def remove_document(self, name: str) -> bool:
        """Remove the document of exactly that name; False if there is none."""
        with self._storage.writing() as store:
            exists = store.file_state(name) is not None
            if exists:
                store.remove([name])
        return exists

    def documents(self, *, after: str = "", limit: int = 100) -> list[DocumentInfo]:
        """At most `limit` documents, sorted by name, that come after the name `after`."""
        from .results import DocumentInfo

        return [DocumentInfo(*row) for row in self._store.list_documents(after=after, limit=limit)]

    def source_path(self, name: str) -> str | None:
        """The absolute path of the file that a document was read from; None for a text."""
        return self._store.source_path(name)

    def sentences(
        self, name: str, first: int = 0, last: int = 2**62
    ) -> list[DocumentSentence] | None:
        """Sentences `first` to `last` of a document, both included; None for an unknown name."""
        from .retrieval import to_document_sentence

        document_id = self._store.document_id(name)
        if document_id is None:
            return None
        return [
            to_document_sentence(sentence)
            for sentence in self._store.sentences(document_id, first, last)
        ]

    def ask(
        self,
        question: str,
        *,
        top_k: int = 5,
        retrieved: int = DEFAULT_RETRIEVED,
        blend: float = DEFAULT_BLEND,
        phrases: bool = False,
        context: int = 1,
        threshold: float | None = None,
        join: bool = False,
    ) -> Answers:
        """
        The best `top_k` sentences, best first.

        `retrieved` sentences are found by their words and ranked. Their order is that of the
        ranker's score plus `blend` times the retrieval score; without a ranker, it is that of the
        retrieval. With `phrases`, sentences are also found by the phrases in them
        (`encode_phrases`), and the best of both searches are ranked.

        Each answer has `context` sentences before and after it. `threshold` replaces the ranker's
        own; with 0, the best sentence is always an answer. With `join`, sentences that follow each
        other, reach the threshold and are about equally probable are one answer.
        """
        from ..rankers.requests import check_question
        from .ask import answer

        check_question(question)  # before indexes are updated and models are loaded
        ask = partial(
            answer,
            question,
            top_k=top_k,
            retrieved=retrieved,
            blend=blend,
            context=context,
            threshold=threshold,
            join=join,
        )
        ranker = self._loaded_ranker
        # Before the snapshot, in which no phrases of a database can be encoded.
        by_phrases = self._phrases.retriever() if phrases else None
        try:
            with self._store.snapshot():
                answers = ask(self._retriever(by_phrases), ranker)
        except SearchIndexDamagedError:
            self._storage.search_index(rebuild=True)
            answers = ask(self._retriever(by_phrases), ranker)
        except CorpusError:
            if not self._storage.drop_damaged():
                raise
            answers = ask(self.retriever(phrases=phrases), ranker)
        return replace(answers, missing_shards=self.missing_shards)

    def snapshot(self) -> AbstractContextManager[None]:
        """
        In its block, this thread sees one state of a corpus in a database while others write.

        `ask` does this by itself. A corpus in a folder shows the last state that was stored.
        """
        return self._store.snapshot()

    def nearest(self, question: str, *, top_k: int = 5, context: int = 1) -> Answers:
        """The sentences of the nearest phrases, nearest first; no ranker is used."""
        from ..rankers.requests import check_question
        from .ask import answer

        check_question(question)
        retriever = self._phrases.retriever()
        with self._store.snapshot():
            answers = answer(
                question,
                retriever,
                top_k=top_k,
                retrieved=max(top_k, DEFAULT_RETRIEVED),
                context=context,
            )
        return replace(answers, missing_shards=self.missing_shards)

    def retriever(self, *, phrases: bool = False) -> Retriever:
        """The retriever of `ask`, over indexes that are up to date with the store."""
        return self._retriever(self._phrases.retriever() if phrases else None)

    def encode_phrases(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        on_document: Callable[[], None] | None = None,
    ) -> None:
        """
        Encode the phrases of all documents that are not encoded yet.

        `nearest` and `ask(phrases=True)` do this first. `model` is a folder that `askline train
        phrases` wrote, or `en` or `fr` for a model that comes with askline. Without it, the model
        used last encodes all documents; the first time, the French one if more than half of a
        sample of the documents are French, and otherwise the English one. It may be stopped at any
        time and continues from there. `on_document` is called after each document.
        """
        self._phrases.encode(model, on_document)

    def export_passages(self, url: str) -> int:
        """
        Write all passages to an index of a search engine, and return their number.

        `url` is `opensearch://HOST/INDEX` or `elasticsearch://HOST/INDEX`. The index is created if
        it is missing, and passages of earlier exports that are gone are deleted. `connect(url)`
        searches them there.
        """
        from .connectors.search_engines import load_passages

        with self.snapshot():
            return load_passages(self._store, url)

    def verify(self, *, on_document: Callable[[], None] | None = None) -> VerifyReport:
        """
        Check every document against its checksums, and repair what is damaged.

        The files of damaged documents are read again. A damaged text, or a document whose file is
        gone, becomes an unreadable document: it is in `status().unreadable`, gives no answers, and
        is restored when it is added again. A damaged search index is rebuilt. `on_document` is
        called after each document.
        """
        from .results import VerifyReport

        if parts := self._storage.parts:
            from .shards import merge_verify_reports

            shards = [type(self)(part, None) for part in parts]
            return merge_verify_reports([each.verify(on_document=on_document) for each in shards])
        from .verification import verify_store

        started = time.monotonic()
        with self._storage.writing(repairing=True) as store:
            found = verify_store(store, on_document)
            search_rebuilt = self._storage.repair_search(rebuild=found.rebuilt)
        restored = set(found.restored)
        return VerifyReport(
            documents=found.documents,
            damaged=tuple(found.damaged),
            restored=tuple(found.restored),
            lost=tuple(name for name in found.damaged if name not in restored),
            checksums_added=found.checksums_added,
            store_rebuilt=found.rebuilt,
            search_rebuilt=search_rebuilt,
            seconds=time.monotonic() - started,
        )

    def status(self) -> CorpusStatus:
        """What the corpus contains; nothing is changed."""
        documents, sentences, characters = self._store.counts()
        from .results import CorpusStatus

        unread = [Problem(*row) for row in self._store.unreadable()]
        phrases, storage = self._phrases.status(), self._storage.status()
        return CorpusStatus(
            folder=self._storage.place,
            documents=documents,
            sentences=sentences,
            characters=characters,
            unreadable=tuple(problem for problem in unread if problem.reason != "empty"),
            generation=self._store.generation,
            searchable=storage.searchable,
            store_bytes=storage.store_bytes,
            search_bytes=storage.search_bytes,
            writer=storage.writer,
            phrases=phrases.phrases,
            phrase_bytes=phrases.size_bytes,
            encoded=phrases.is_current,
            not_read=self._not_read(unread),
            shards=len(self._storage.parts) + len(self.missing_shards) or None,
            missing_shards=self.missing_shards,
        )

    @property
    def missing_shards(self) -> tuple[MissingShard, ...]:
        """Shards that are not searched; only with `allow_partial`."""
        return self._storage.missing_shards

    def close(self) -> None:
        """Close the files. No data is lost if this is not called."""
        self._storage.close()

    def __repr__(self) -> str:
        return f"<Corpus in {self._storage.place or 'memory'}>"

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        location = self._storage.location
        if location is None:
            raise CorpusError(
                "A corpus in memory cannot be pickled. Open a folder instead: Corpus.open(FOLDER)."
            )
        return _reopen, (type(self), location, self._ranker, self._storage.allow_partial)

    @cached_property
    def _loaded_ranker(self) -> Ranker | None:
        from ..rankers.spec import load

        return load(self._ranker) if isinstance(self._ranker, str) else self._ranker

    @property
    def _phrases(self) -> Phrases:
        return self._storage.phrases

    def _retriever(self, phrases: PhraseRetriever | MergedPhraseRetriever | None) -> Retriever:
        from .retrieval import LexicalRetriever

        words = LexicalRetriever(self._store, self._storage.search_index())
        if phrases is None:
            return words
        from .phrase_retrieval import HybridRetriever

        return HybridRetriever(words, phrases)

    def _not_read(self, unread: Sequence[Problem]) -> tuple[NotReadFiles, ...]:
        """What was left out when files were added, and what could not be read."""
        from .ingest import NotReadCounts

        counts = NotReadCounts()
        for record in self._store.skipped():
            counts.add(record.example, record.reason, kind=record.kind, count=record.files)
        for problem in unread:
            counts.add(self._store.source_path(problem.path) or problem.path, problem.reason)
        return counts.files()


def _matching(store: DocumentStore, given: str) -> list[str]:
    """The documents with this id or path, and those inside this folder."""
    from .document_records import absolute_path

    path = absolute_path(given)
    inside = [name for name, _ in store.files(prefix=os.path.join(path, ""))]
    file = store.file_at(path)
    by_path = [file[0]] if file else []
    by_id = [given] if store.file_state(given) else []
    return by_id + by_path + inside


def _strings(values: Sequence[str], name: str) -> tuple[str, ...]:
    """A list of strings; InputError for a single string, which would be read as its letters."""
    found = () if isinstance(values, str) else tuple(values)
    if isinstance(values, str) or not all(isinstance(each, str) for each in found):
        raise InputError(f"`{name}` must be a list of strings, got {values!r}.")
    return found


def _reopen(
    cls: type[Corpus], folder: str, ranker: str | Ranker | None, allow_partial: bool = False
) -> Corpus:
    """Unpickle a corpus."""
    return cls.open(folder, ranker=ranker, must_exist=True, allow_partial=allow_partial)
