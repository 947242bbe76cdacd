"""
What a whole list of candidates shows beside a question: matches of words, as numbers.

All of it is blind to the order of the list. Rarity is counted twice, in the language (the word
vectors bring it) and in the list, for a short list says little about which words are rare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np

from ..text.words import words
from .channels import FloatArray, IntArray
from .vectors import WordVectors

__all__ = ["Listing", "Matches"]

_INFLECTION = 0.9  # of the share of a word that two words begin with, "olmecs" and "olmec": 0.75
_SHARED_START = 0.7
_NEARLY_SAME = 0.99  # for different words: 1 means the very word


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """
    Texts as numbered words, the question's distinct words first.

    A text without words has one word, the empty one, whose vector is zero and which equals nothing.
    """

    distinct: list[str]
    vectors: FloatArray  # (distinct, dimensions), of length 1
    rarity: FloatArray  # (distinct,)
    question: IntArray  # (words of the question,), repeated ones repeated
    asked: int  # how many of the distinct words the question has
    row: IntArray  # the candidates' words, one candidate after the other
    lengths: IntArray  # (candidates,)
    starts: IntArray  # (candidates,)
    owner: IntArray  # (row,) which candidate a word belongs to

    @classmethod
    def of(cls, question: str, candidates: Sequence[str], vectors: WordVectors) -> Listing:
        """Number the words and look each distinct one up."""
        asked = words(question) or [""]
        said = [words(text) or [""] for text in candidates]
        number: defaultdict[str, int] = defaultdict(count().__next__)  # the next for a new word
        ask = np.array([number[word] for word in asked], np.int64)
        own = len(number)
        lengths = np.fromiter(map(len, said), np.int64, len(said))
        every = map(number.__getitem__, chain.from_iterable(said))
        row = np.fromiter(every, np.int64, int(lengths.sum()))
        distinct = list(number)
        table, rarity = vectors.look_up(distinct)
        if "" in number:
            table[number[""]] = rarity[number[""]] = 0.0
        return cls(
            distinct,
            table,
            rarity,
            ask,
            own,
            row,
            lengths,
            np.cumsum(lengths) - lengths,
            np.repeat(np.arange(len(said)), lengths),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """How the question's distinct words and the candidates' words meet."""

    related: FloatArray  # (asked, distinct): 1 for the very word, else cosine or shared start
    best: FloatArray  # (candidates, asked): the most related word that the candidate has
    counts: FloatArray  # (candidates, asked): how often the candidate has the very word
    rarity: FloatArray  # (asked,) in the language
    scarcity: FloatArray  # (asked,) in the list, near 0 for a word that all have, near 1 for none

    @classmethod
    def of(cls, listing: Listing) -> Matches:
        """Compare each question word with each distinct word once, then look up."""
        asked, size = listing.asked, len(listing.lengths)
        related = np.clip(listing.vectors[:asked] @ listing.vectors.T, 0.0, _NEARLY_SAME)
        _raise_inflections(related, listing.distinct, asked)
        real = np.array([word != "" for word in listing.distinct[:asked]])
        related[np.arange(asked), np.arange(asked)] = real
        best = np.maximum.reduceat(related.T[listing.row], listing.starts, axis=0)
        hit = listing.row < asked
        cells = listing.owner[hit] * asked + listing.row[hit]
        counts = np.bincount(cells, minlength=size * asked).reshape(size, asked) * real
        having = (counts > 0).sum(axis=0)
        scarcity = np.log1p((size - having + 0.5) / (having + 0.5)) / np.log1p(size + 1.0)
        return cls(
            related,
            best,
            counts.astype(np.float32),
            listing.rarity[:asked],
            scarcity.astype(np.float32),
        )


def _raise_inflections(related: FloatArray, distinct: Sequence[str], asked: int) -> None:
    """In place: words that begin alike are related, whatever their vectors say."""
    by_start: dict[str, list[int]] = {}
    for place, word in enumerate(distinct[:asked]):
        if len(word) > 2 and not word[0].isdigit():
            by_start.setdefault(word[:3], []).append(place)
    alike = [column for column, word in enumerate(distinct) if word[:3] in by_start]
    for column in alike:
        for place in by_start[distinct[column][:3]]:
            share = _shared_start(distinct[column], distinct[place])
            if share >= _SHARED_START:
                related[place, column] = max(related[place, column], _INFLECTION * share)


def _shared_start(one: str, other: str) -> float:
    """The share of the longer word that both begin with."""
    same = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        same += 1
    return same / max(len(one), len(other))
