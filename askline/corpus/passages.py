"""
How sentences are grouped into passages, the unit that the search index and phrase index hold.

A sentence alone often lacks the words that a question about it uses, because they are in the
sentences next to it. Retrieval therefore searches passages first and then the sentences in them
(research/decisions/corpus-store.md has the figures).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from ..text.readers.prepared import (
    HEADING_SEPARATOR,
    PASSAGE_CHARACTERS,
    IndexedPassage,
    heading_line,
    passage_ranges,
    passage_words,
)
from .schema import SentenceRecord

__all__ = [
    "HEADING_SEPARATOR",
    "MAX_SENTENCE_CHARACTERS",
    "PASSAGE_CHARACTERS",
    "IndexedPassage",
    "PassageHit",
    "PassageIndex",
    "PassageRange",
    "indexed_passages",
    "passage_heading",
    "split_passages",
]

MAX_SENTENCE_CHARACTERS = 4_000
"""Characters of a sentence that are scored; a longer one is data without full stops."""


class PassageRange(NamedTuple):
    """Sentences `first` to `last` of a document, both included, and the text to index."""

    first: int
    last: int
    text: str


class PassageHit(NamedTuple):
    """Sentences `first` to `last` of a document, by its id in the store."""

    document_id: int
    first: int
    last: int
    score: float


class PassageIndex(Protocol):
    """Passages under their terms, ranked by BM25."""

    @property
    def stem(self) -> Callable[[str], str]:
        """The index term of a word; empty if the index leaves the word out."""
        ...

    def term_weights(self, terms: Iterable[str]) -> Mapping[str, float]:
        """The inverse document frequency of each term over passages; unknown terms are left out."""
        ...

    def search(
        self, terms: Mapping[str, float], limit: int, *, titles: float = 0.0
    ) -> list[PassageHit]:
        """
        At most `limit` passages with the highest BM25 scores, best first.

        Each term counts by its factor, and `titles` times as much again in titles and headings.
        """
        ...


def split_passages(sentences: Iterable[SentenceRecord]) -> Iterator[PassageRange]:
    """The passages of a document by the rule of `passage_ranges`, with their texts."""
    for group in _groups(sentences):
        text = "\n".join([passage_heading(group[0]), *(sentence.text for sentence in group)])
        yield PassageRange(group[0].ordinal, group[-1].ordinal, text)


def indexed_passages(title: str, sentences: Iterable[SentenceRecord]) -> Iterator[IndexedPassage]:
    """The passages of a document with their words; each also contains the words of the title."""
    words_of = passage_words(title)
    for group in _groups(sentences):
        words = words_of(passage_heading(group[0]), [sentence.text for sentence in group])
        yield IndexedPassage(group[0].ordinal, group[-1].ordinal, *words)


def passage_heading(sentence: SentenceRecord) -> str:
    """The first line of the passage that starts with this sentence: its path, then its columns."""
    return heading_line(sentence.heading, sentence.path)


def _groups(sentences: Iterable[SentenceRecord]) -> Iterator[list[SentenceRecord]]:
    """The sentences of each passage; only those of one passage are in memory."""
    waiting: list[SentenceRecord] = []
    position = 0  # of the first waiting sentence

    def rows() -> Iterator[tuple[int, tuple[str, str], int]]:
        for sentence in sentences:
            waiting.append(sentence)
            yield sentence.kind, (sentence.heading, sentence.path), len(sentence.text)

    for first, last in passage_ranges(rows()):
        yield waiting[first - position : last + 1 - position]
        del waiting[: last + 1 - position]
        position = last + 1
