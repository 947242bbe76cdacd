"""
Passages: runs of neighbouring sentences, which is what the search index holds.

A sentence alone often lacks the words that a question about it uses, for they stand next to it. So
retrieval looks for passages first, and for sentences inside them
(research/decisions/corpus-store.md has the figures).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .rows import SentenceRow

__all__ = ["PASSAGE_CHARACTERS", "Passage", "passages"]

PASSAGE_CHARACTERS = 1000
"""Recall was the same from 700 upwards and lower at 400; longer ones give more to look through."""


class Passage(NamedTuple):
    """Sentences `first` to `last` of a document, both included, and the words to find them by."""

    first: int
    last: int
    text: str


def passages(sentences: Iterable[SentenceRow]) -> Iterator[Passage]:
    """Cut a document under each heading, and where a passage would become too long."""
    run: list[SentenceRow] = []
    size = 0
    for row in sentences:
        if run and (row.heading != run[0].heading or size + len(row.text) > PASSAGE_CHARACTERS):
            yield _passage(run)
            run, size = [], 0
        run.append(row)
        size += len(row.text)
    if run:
        yield _passage(run)


def _passage(run: Sequence[SentenceRow]) -> Passage:
    text = "\n".join([run[0].heading, *(row.text for row in run)])
    return Passage(run[0].ordinal, run[-1].ordinal, text)
