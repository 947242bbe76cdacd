"""
Title context: the title, headings and lead-in that a ranker reads in front of a sentence.

Under a title or heading, a sentence need not name its subject: "MIT." is enough below "License".
What contains words of the question that the sentence and the nearer headings lack is put in front
of the sentence (research/decisions/corpus-store.md has the figures).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from ..text.words import STOP_WORDS, split_words
from .bm25 import Stemmer
from .passages import HEADING_SEPARATOR, MAX_SENTENCE_CHARACTERS

__all__ = ["SentenceInContext", "TitledSentence", "add_title_context", "title_path"]

_MAX_TITLE_CHARACTERS = 200

_FILE_SUFFIX = re.compile(r"(?<=\w)\.[A-Za-z]{2,5}$")
_FILE_NAME_SEPARATORS = re.compile(r"[_-]+")


class TitledSentence(Protocol):
    """A sentence, the title of its document, the headings above it, and the lead-in of its list."""

    @property
    def text(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def heading(self) -> str: ...

    @property
    def headings(self) -> Sequence[str]: ...

    @property
    def lead_in(self) -> str: ...


class SentenceInContext(NamedTuple):
    """A sentence with its context in front: `text[sentence_start:]` is the sentence."""

    text: str
    sentence_start: int


def add_title_context(
    question: str, sentences: Sequence[TitledSentence]
) -> list[SentenceInContext]:
    """Each sentence, at most 4,000 characters of it, with the titles and headings it needs."""
    stem = Stemmer().stem

    def terms(text: str) -> frozenset[str]:
        return frozenset(stem(word) for word in split_words(text) if word not in STOP_WORDS)

    question_terms = terms(question)
    # Cached, because most sentences share their title and heading with others.
    shared_terms = cache(lambda title: question_terms & terms(title))
    contexts = []
    for sentence in sentences:
        text = sentence.text[:MAX_SENTENCE_CHARACTERS]
        titles = [title for title in _titles(sentence) if shared_terms(title)]
        needed = []
        if titles:
            known = terms(text)
            for title in titles:
                if not shared_terms(title) <= known:
                    needed.append(title)
                    known |= shared_terms(title)
        context = f"{' · '.join(reversed(needed)).removesuffix(':')}: " if needed else ""
        contexts.append(SentenceInContext(context + text, len(context)))
    return contexts


def title_path(sentence: TitledSentence) -> str:
    """
    The title and the headings above a sentence, from the highest to the nearest.

    The highest are left out of a path of more than 200 characters.
    """
    titles = _readable_title(sentence.title), *sentence.headings[:-1], sentence.heading
    parts = list(dict.fromkeys(title for title in titles if title))
    while len(parts) > 1 and len(HEADING_SEPARATOR.join(parts)) > _MAX_TITLE_CHARACTERS:
        del parts[0]
    return HEADING_SEPARATOR.join(parts)[:_MAX_TITLE_CHARACTERS]


def _titles(sentence: TitledSentence) -> Iterable[str]:
    """The lead-in, the headings from the nearest to the highest, and the title; each once."""
    above = reversed(sentence.headings[:-1])
    titles = sentence.lead_in, sentence.heading, *above, _readable_title(sentence.title)
    return dict.fromkeys(title[:_MAX_TITLE_CHARACTERS] for title in titles if title)


def _readable_title(title: str) -> str:
    """Turn a file name into words: `travel-policy.txt` into `travel policy`."""
    if " " in title:
        return title
    return _FILE_NAME_SEPARATORS.sub(" ", _FILE_SUFFIX.sub("", title))
