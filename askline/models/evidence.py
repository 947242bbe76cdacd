"""
What a whole list of candidates shows beside a question: matches of words, as numbers.

All of it is blind to the order of the list. Rarity is counted twice, in the language (the word
vectors bring it) and in the list, for a short list says little about which words are rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..text.words import BREAK, words_in_row
from .channels import FloatArray, IntArray
from .products import product
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
        distinct, row, lengths = _numbered((question, *candidates))
        table, rarity = vectors.look_up(distinct)
        for end in (0, -1):  # where the empty word stands if there is one
            if distinct[end] == "":
                table[end] = rarity[end] = 0.0
        ask, row, lengths = row[: lengths[0]], row[lengths[0] :], lengths[1:]
        return cls(
            distinct,
            table,
            rarity,
            ask,
            int(ask.max()) + 1,
            row,
            lengths,
            np.cumsum(lengths) - lengths,
            np.repeat(np.arange(len(lengths)), lengths),
        )


def _numbered(texts: Sequence[str]) -> tuple[list[str], IntArray, IntArray]:
    """The distinct words in the order first met, the words of all texts, how many each has."""
    said = words_in_row(texts)
    seen = dict.fromkeys(said)
    seen.pop(BREAK, None)
    if said[:1] in ([], [BREAK]):  # the first text has no words
        seen = {"": None} | seen
    number = dict(zip(seen, range(len(seen)), strict=True))
    number[BREAK] = -1
    row = np.fromiter(map(number.__getitem__, said), np.int64, len(said))
    ends = np.flatnonzero(row < 0)
    lengths = np.diff(ends, prepend=-1, append=len(row)) - 1
    row = row[row >= 0]
    empty = np.flatnonzero(lengths == 0)
    if len(empty):
        word = list(seen | {"": None}).index("")
        row = np.insert(row, np.cumsum(lengths)[empty], word)
        lengths[empty] = 1
        seen |= {"": None}
    return list(seen), row, lengths


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
        cosine = product(listing.vectors, listing.vectors[:asked].T)  # (distinct, asked)
        related = np.clip(cosine.T, 0.0, _NEARLY_SAME, order="C")
        _raise_inflections(related, listing.distinct, asked)
        real = np.array([word != "" for word in listing.distinct[:asked]])
        related[np.arange(asked), np.arange(asked)] = real
        # One question word at a time: its row is short and stays in the nearest cache.
        best = [np.maximum.reduceat(one.take(listing.row), listing.starts) for one in related]
        hit = listing.row < asked
        cells = listing.owner[hit] * asked + listing.row[hit]
        counts = np.bincount(cells, minlength=size * asked).reshape(size, asked) * real
        having = (counts > 0).sum(axis=0)
        scarcity = np.log1p((size - having + 0.5) / (having + 0.5)) / np.log1p(size + 1.0)
        return cls(
            related,
            np.stack(best, axis=1),
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
