"""
How sentences are grouped into passages, the unit that the search index and phrase index hold.

A sentence alone often lacks the words that a question about it uses, because they are in the
sentences next to it. Retrieval therefore searches passages first and then the sentences in them
(research/decisions/corpus-store.md has the figures).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .schema import SentenceRecord

__all__ = [
    "HEADING_SEPARATOR",
    "MAX_SENTENCE_CHARACTERS",
    "PASSAGE_CHARACTERS",
    "PassageRange",
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
