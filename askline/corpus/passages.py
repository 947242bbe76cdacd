"""
How sentences are grouped into passages, the unit that the search index and phrase index hold.

A sentence alone often lacks the words that a question about it uses, because they are in the
sentences next to it. Retrieval therefore searches passages first and then the sentences in them
(research/decisions/corpus-store.md has the figures).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from ..text.words import identifier_words, split_identifiers, split_words
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

HEADING_SEPARATOR = " > "
"""Between the headings of a path that is shown on one line."""

PASSAGE_CHARACTERS = 1000
"""Upper limit. Recall is the same from 700 upwards and lower at 400; longer passages cost more."""

MAX_SENTENCE_CHARACTERS = 4_000
"""Characters of a sentence that are scored; a longer one is data without full stops."""


class PassageRange(NamedTuple):
    """Sentences `first` to `last` of a document, both included, and the text to index."""

    first: int
    last: int
    text: str


class IndexedPassage(NamedTuple):
    """A passage as it is indexed: its words, separated by spaces and not yet stemmed."""

    first: int
    last: int
    words: str
    """The words of the title of its document, of its headings and of its sentences."""
    title_words: str
    """The words of the title and the headings, each once."""


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
    """
    Start a passage at each heading, and where the passage would exceed the limit.

    Headings and the names of columns are not sentences of a passage, because the passages below
    them start with their path. Code belongs to the passage above it if it fits into it. A passage
    of nothing but code is left out, because code is never an answer.
    """
    group: list[SentenceRecord] = []
    size = 0
    for sentence in sentences:
        if group and (
            sentence.is_heading
            or (sentence.heading, sentence.path) != (group[0].heading, group[0].path)
            or size + len(sentence.text) > PASSAGE_CHARACTERS
        ):
            yield from _passages(group)
            group, size = [], 0
        if not sentence.is_heading:
            group.append(sentence)
            size += len(sentence.text)
    yield from _passages(group)


def indexed_passages(title: str, sentences: Iterable[SentenceRecord]) -> Iterator[IndexedPassage]:
    """The passages of a document with their words; each also contains the words of the title."""
    own = split_identifiers(title)
    for first, last, text in split_passages(sentences):
        # Line by line: most lines are pure ASCII, which is split three times as fast.
        words = chain(own, *map(split_words, text.splitlines()), identifier_words(text))
        heading = text.partition("\n")[0]
        title_words = dict.fromkeys(chain(own, split_identifiers(heading)))
        yield IndexedPassage(first, last, " ".join(words), " ".join(title_words))


def passage_heading(sentence: SentenceRecord) -> str:
    """The first line of the passage that starts with this sentence: its path, then its columns."""
    above = sentence.headings[:-1]
    return HEADING_SEPARATOR.join((*above, sentence.heading) if sentence.heading else above)


def _passages(sentences: Sequence[SentenceRecord]) -> Iterator[PassageRange]:
    if not all(sentence.is_code for sentence in sentences):
        text = "\n".join(
            [passage_heading(sentences[0]), *(sentence.text for sentence in sentences)]
        )
        yield PassageRange(sentences[0].ordinal, sentences[-1].ordinal, text)
