"""
What a ranker gets to read of a sentence.

In a document with a title, and under a heading, a sentence need not say what it is about: "MIT."
says enough below "Licence". So where title or heading have words of the question that the sentence
lacks, they stand before it (research/decisions/corpus-store.md has the figures).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from ..text.words import words
from .retrieval import LONGEST
from .stems import Stems

__all__ = ["InContext", "Titled", "in_context"]

_LONGEST_LEAD = 200  # characters of a title or heading; the rest of a longer one is no name

_SUFFIX = re.compile(r"(?<=\w)\.[A-Za-z]{2,5}$")
_BETWEEN = re.compile(r"[_-]+")
# Words that a heading may share with a question without saying anything.
_EMPTY = frozenset(
    """a an and are as at be been but by can could did do does for from had has have how i if in is
    it its may much many no not of on or should so than that the their them then there these they
    this those to us was we were what when where which while who whom whose why will with would you
    your

    au aux ce cela ces cette combien comment d dans de des du elle en est et il ils l la le les leur
    mais ne où ou par pas pour pourquoi qu quand que quel quelle quelles quels qui quoi sa se ses
    son sont sur un une""".split()
)


class Titled(Protocol):
    """A sentence, the title of its document, and the heading above it."""

    @property
    def text(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def heading(self) -> str: ...


class InContext(NamedTuple):
    """A sentence behind what stands above it: `text[lead:]` is the sentence."""

    text: str
    lead: int


def in_context(question: str, found: Sequence[Titled]) -> list[InContext]:
    """Each sentence, at most 4,000 characters of it, with what it needs in front."""
    stem = Stems().stem

    def terms(text: str) -> frozenset[str]:
        return frozenset(stem(word) for word in words(text) if word not in _EMPTY)

    asked = terms(question)
    above = cache(lambda name: asked & terms(name))  # most sentences share theirs with others
    said = []
    for each in found:
        text = each.text[:LONGEST]
        names = [name for name in _names(each) if above(name)]
        if names:
            own = terms(text)
            names = [name for name in names if not above(name) <= own]
        lead = f"{' · '.join(names)}: " if names else ""
        said.append(InContext(lead + text, len(lead)))
    return said


def _names(found: Titled) -> Iterable[str]:
    """The title and the heading, each once."""
    names = _spoken(found.title), found.heading
    return dict.fromkeys(name[:_LONGEST_LEAD] for name in names if name)


def _spoken(title: str) -> str:
    """A file's name as one would say it: `travel-policy.txt` as `travel policy`."""
    if " " in title:
        return title
    return _BETWEEN.sub(" ", _SUFFIX.sub("", title))
