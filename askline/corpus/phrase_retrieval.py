"""
The phrase index beside the store: the phrases of every passage, encoded once.

It is derived from the store and follows it. Documents are encoded in the order of their ids, which
are never given twice, so a stamp says how far it has come: every document up to `until` that is in
the store is in the index. No lock is held while phrases are encoded, only while they are put in
place, and it is not the store's; a process that is killed loses some seconds of encoding.

Retrieval by phrases: the sentences that the nearest phrases to a question stand in.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorpusError
from ..phrases import PhraseHit, PhraseIndex, PhraseModel
from .bm25 import standard
from .lock import LOCK_NAME, writing
from .results import AnswerPhrase, RetrievedSentence
from .retrieval import MAX_SENTENCE_CHARACTERS, LexicalRetriever, neighbors, retrieved_sentence
from .schema import SentenceRecord
from .search_index import passages
from .store import Store

__all__ = [
    "PHRASE_WEIGHT",
    "HybridRetriever",
    "PassageId",
    "PhraseIndexSync",
    "PhraseRetriever",
    "try_open_phrase_index",
]

FORMAT = 1
"""Raised when passages change: an index of another format is built anew."""
_BATCH = 128  # passages that are encoded before they are put in place: some seconds
_PATIENCE_SECONDS = 60.0  # another needs a second to put a batch in place, more to join segments


class PassageId(NamedTuple):
    """What a passage is called in the phrase index: sentences `first` to `last` of a document."""

    document: int
    first: int
    last: int

    @classmethod
    def read(cls, name: str) -> PassageId:
        return cls(*map(int, name.split("/")))

    def __str__(self) -> str:
        return "/".join(map(str, self))


class PhraseIndexSync:
    """
    The phrases of a store in a folder, by one model.

    `home` is the model's folder, None for the one that comes with askline; who opens the index
    later learns it from there.
    """

    def __init__(self, store: Store, folder: Path, model: PhraseModel, home: str | None) -> None:
        self._store, self._folder = store, folder
        self._home = home
        self.model = model
        self._opened: PhraseIndex | None = None

    def current_search_index(self, on_document: Callable[[], None] | None = None) -> PhraseIndex:
        """
        The index with all that is in the store.

        What is missing is encoded; what is damaged, or of another model or store, is built anew.
        Where the folder may not be written, the index is used as it is, if there is one.
        """
        generation = self._store.generation
        index = self._usable()
        if index is not None and index.stamp["generation"] == generation:
            return index
        if index is not None and not os.access(self._folder, os.W_OK):
            return index
        return self._follow(generation, on_document)

    def is_superseded(self) -> bool:
        """Whether another has built the index anew with a model of its choice."""
        if self._opened is not None and self._opened.is_current():
            return False
        found = try_open_phrase_index(self._folder)
        if found is None or found.stamp.get("store") != self._store.identity:
            return False
        return bool(found.stamp.get("model") != self.model.config.identity)

    def _usable(self) -> PhraseIndex | None:
        """The index as it is now, opened again where another has written."""
        if self._opened is None or not self._opened.is_current():
            found = try_open_phrase_index(self._folder)
            wanted = self._stamp(0, 0)
            ours = found is not None and all(
                found.stamp.get(key) == wanted[key] for key in ("format", "store", "model")
            )
            self._opened = found if ours else None
        return self._opened

    def _follow(self, generation: int, on_document: Callable[[], None] | None) -> PhraseIndex:
        self._make_folder()
        _, documents = self._store.changes(-1)
        with self._writing(anew=True) as index:
            left = set(documents)
            names = index.documents
            index.delete(name for name in names if PassageId.read(name).document not in left)
        done = until = int(index.stamp["until"])
        waiting: list[tuple[str, str]] = []
        for document in documents:
            if document <= until:
                continue
            for name, text in self._passages(document):
                if name not in index:  # a document of many batches goes on where it was cut off
                    waiting.append((name, text))
                if len(waiting) >= _BATCH:
                    index = self._put(waiting, done)
                    waiting = []
            done = document
            if on_document is not None:
                on_document()
        self._put(waiting, done)
        with self._writing() as index:
            index.delete([], stamp=self._stamp(int(index.stamp["until"]), generation))
        return index

    def _passages(self, document: int) -> Iterator[tuple[str, str]]:
        rows = (
            row._replace(text=row.text[:MAX_SENTENCE_CHARACTERS])
            for row in self._store.all_sentences(document)
        )
        for first, last, text in passages(rows):
            yield str(PassageId(document, first, last)), text

    def _put(self, waiting: Sequence[tuple[str, str]], done: int) -> PhraseIndex:
        """Encode, then put in place; `done` is the last document that is whole with these."""
        coded = self.model.encode_many([text for _, text in waiting])
        with self._writing() as index:
            until = max(done, int(index.stamp["until"]))
            index.add(
                [(name, text, own) for (name, text), own in zip(waiting, coded, strict=True)],
                stamp=self._stamp(until, -1),
            )
            index.tidy()
        return index

    def _stamp(self, until: int, generation: int) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "store": self._store.identity,
            "model": self.model.config.identity,
            "home": self._home,
            "until": until,
            "generation": generation,
        }

    @contextmanager
    def _writing(self, *, anew: bool = False) -> Iterator[PhraseIndex]:
        """The index under its own lock; with `anew`, an empty one in place of one of no use."""
        with writing(self._folder, patience=_PATIENCE_SECONDS):
            index = self._usable()
            if index is None and not anew:
                raise CorpusError(
                    f"{self._folder} was taken away while phrases were encoded, or another process "
                    "encodes them with another model. Try again when it has ended."
                )
            yield index or self._emptied()

    def _emptied(self) -> PhraseIndex:
        for entry in self._folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != LOCK_NAME:
                entry.unlink(missing_ok=True)
        self._opened = PhraseIndex.open(self._folder, create=True)
        self._opened.delete([], stamp=self._stamp(0, -1))
        return self._opened

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CorpusError(
                f"{self._folder} cannot be made: {error.strerror or error}."
            ) from error


def try_open_phrase_index(folder: Path) -> PhraseIndex | None:
    """The phrase index in a folder; None where there is none or it cannot be used."""
    try:
        return PhraseIndex.open(folder)
    except CorpusError:
        return None


_PHRASES_A_SENTENCE = 3
"""Looked for, for each sentence asked for: a sentence has several phrases that are near."""
PHRASE_WEIGHT = 1.0
"""
Weight of the phrase search's standard scores relative to those of the word search
(research/results/phrase_fusion.json).
"""


class PhraseRetriever:
    """
    The nearest phrases' sentences, each with its nearest phrase.

    A phrase that reaches into the next sentence is none, and neither is one of a heading.
    """

    def __init__(self, store: Store, index: PhraseIndex, model: PhraseModel) -> None:
        self._store, self._index, self._model = store, index, model

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences, best first."""
        hits = self._index.search(self._model.question(question), _PHRASES_A_SENTENCE * k)
        found: dict[tuple[int, int], RetrievedSentence] = {}
        rows: dict[str, list[SentenceRecord]] = {}
        for hit in hits:
            if len(found) == k:
                break
            place = PassageId.read(hit.document)
            if hit.document not in rows:
                rows[hit.document] = self._store.sentences(*place)
            row, phrase = _located(hit, rows[hit.document])
            if row is None or (place.document, row.ordinal) in found or row.is_heading:
                continue
            described = self._store.document(place.document)
            if described is not None:  # it was not removed in between
                said = retrieved_sentence(self._store, place.document, described, row, hit.score)
                found[place.document, row.ordinal] = replace(said, phrase=phrase)
        return list(found.values())

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        """The sentence before and the sentence after; empty where there is none."""
        return neighbors(self._store, found)

    def __len__(self) -> int:
        return self._store.counts()[1]

    def __str__(self) -> str:
        return "phrases"


class HybridRetriever:
    """Sentences found by their words and by their phrases, by the sum of their standard scores."""

    def __init__(
        self, words: LexicalRetriever, phrases: PhraseRetriever, weight: float = PHRASE_WEIGHT
    ) -> None:
        self._words, self._phrases = words, phrases
        self._weight = weight

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences; what one of the two did not find has its lowest score there."""
        words, near = self._words.retrieve(question, k), self._phrases.retrieve(question, k)
        if not words or not near:
            return words or near
        by_words, by_phrases = ({_place(one): one for one in found} for found in (words, near))
        places = list({**by_words, **by_phrases})
        lowest = words[-1], near[-1]
        first = standard([by_words.get(place, lowest[0]).score for place in places])
        second = standard([by_phrases.get(place, lowest[1]).score for place in places])
        if first is None or second is None:
            return words
        joined = [
            replace(by_phrases.get(place) or by_words[place], score=one + self._weight * other)
            for place, one, other in zip(places, first, second, strict=True)
        ]
        return sorted(joined, key=lambda found: -found.score)[:k]

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        """The sentence before and the sentence after; empty where there is none."""
        return self._words.neighbors(found)

    def __len__(self) -> int:
        return len(self._words)

    def __str__(self) -> str:
        return f"({self._words} + {self._phrases})"


def _place(found: RetrievedSentence) -> tuple[str, int]:
    return found.document, found.ordinal


def _located(
    hit: PhraseHit, rows: list[SentenceRecord]
) -> tuple[SentenceRecord, AnswerPhrase] | tuple[None, None]:
    """The sentence that holds a phrase of its passage, and the phrase as a place in it."""
    start = len(rows[0].heading) + 1 if rows else 0  # the passage begins with its heading
    for row in rows:
        end = start + len(row.text[:MAX_SENTENCE_CHARACTERS])
        if start <= hit.start and hit.end <= end:
            return row, AnswerPhrase(hit.text, hit.start - start, hit.end - start)
        start = end + 1
    return None, None
