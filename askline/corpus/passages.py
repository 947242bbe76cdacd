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

__all__ = ["MAX_SENTENCE_CHARACTERS", "PASSAGE_CHARACTERS", "Passage", "split_passages"]

PASSAGE_CHARACTERS = 1000
"""Upper limit. Recall is the same from 700 upwards and lower at 400; longer passages cost more."""

MAX_SENTENCE_CHARACTERS = 4_000
"""Characters of a sentence that are scored; a longer one is data without full stops."""


class Passage(NamedTuple):
    """Sentences `first` to `last` of a document, both included, and the text to index."""

    first: int
    last: int
    text: str


def split_passages(sentences: Iterable[SentenceRecord]) -> Iterator[Passage]:
    """Start a passage at each heading, and where the passage would exceed the limit."""
    group: list[SentenceRecord] = []
    size = 0
    for sentence in sentences:
        is_new_section = bool(group) and sentence.heading != group[0].heading
        if group and (is_new_section or size + len(sentence.text) > PASSAGE_CHARACTERS):
            yield _passage(group)
            group, size = [], 0
        group.append(sentence)
        size += len(sentence.text)
    if group:
        yield _passage(group)


def _passage(sentences: Sequence[SentenceRecord]) -> Passage:
    text = "\n".join([sentences[0].heading, *(sentence.text for sentence in sentences)])
    return Passage(sentences[0].ordinal, sentences[-1].ordinal, text)
