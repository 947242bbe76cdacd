"""
What the other text of a pair says about each word: the channels that stand beside its vector.

Words come as numbers into a table of distinct words, whose row 0 is the zero word: it stands for a
text without words and equals nothing, not even itself.

What a whole list of candidates shows beside a question: matches of words, as numbers.

All of it is blind to the order of the list. Rarity is counted twice, in the language (the word
vectors bring it) and in the list, for a short list says little about which words are rare.

A question and its candidates as the light networks take them: numbered words and channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..models.word_vectors import WordVectors
from ..text.words import TEXT_SEPARATOR, split_words, split_words_flat
from .numpy_ops import FloatArray, IntArray, matmul

__all__ = [
    "LexicalMatches",
    "Lexicon",
    "PairBlock",
    "PairFeatures",
    "TokenizedList",
    "pair_channels",
]


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Distinct words as a table. Rows follow the numbers that the texts use; row 0 is zero."""

    vectors: FloatArray  # (words, dimensions)
    unit: FloatArray  # (words, dimensions), each row of length 1 or 0
    idf: FloatArray  # (words,)

    @classmethod
    def of(cls, vectors: FloatArray, idf: FloatArray) -> Lexicon:
        """The table with its zero row put before the words' own vectors and idf."""
        rows = np.concatenate([np.zeros((1, vectors.shape[1]), np.float32), vectors])
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
        return cls(rows, unit, np.concatenate([np.zeros(1, np.float32), idf]))


def pair_channels(
    names: Sequence[str],
    lexicon: Lexicon,
    question: IntArray,
    candidates: IntArray,
    starts: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """
    Channels of a question's words beside each candidate, and of the candidates' words.

    `candidates` holds the words of all candidates in a row, `starts` where each begins; no
    candidate is empty. Gives (candidates, question words, channels) and (words, channels).
    """
    asked = np.empty((len(starts), len(question), len(names)), np.float32)
    said = np.empty((len(candidates), len(names)), np.float32)
    if not names:
        return asked, said
    distinct, place = np.unique(candidates, return_inverse=True)
    cosine = (lexicon.unit[question] @ lexicon.unit[distinct].T)[:, place]  # (asked, said)
    match = (question[:, None] == candidates) & (candidates > 0)
    exact = np.maximum.reduceat(match, starts, axis=1).T, match.any(axis=0)
    for column, name in enumerate(names):
        if name == "related":
            asked[..., column] = np.maximum.reduceat(cosine, starts, axis=1).T
            said[:, column] = cosine.max(axis=0)
        else:
            idf = name.endswith("idf")
            asked[..., column] = lexicon.idf[question] if idf else 1.0
            said[:, column] = lexicon.idf[candidates] if idf else 1.0
            if name.startswith("exact"):
                asked[..., column] *= exact[0]
                said[:, column] *= exact[1]
    return asked, said


_INFLECTION = 0.9  # of the share of a word that two words begin with, "olmecs" and "olmec": 0.75
_SHARED_START = 0.7
_NEARLY_SAME = 0.99  # for different words: 1 means the very word


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedList:
    """
    Texts as numbered words, the question's distinct words first.

    A text without words has one word, the empty one, whose vector is zero and which equals nothing.
    """

    distinct: list[str]
    vectors: FloatArray  # (distinct, dimensions), of length 1
    rarity: FloatArray  # (distinct,)
    question: IntArray  # (words of the question,), repeated ones repeated
    question_size: int  # how many of the distinct words the question has
    words: IntArray  # the candidates' words, one candidate after the other
    lengths: IntArray  # (candidates,)
    starts: IntArray  # (candidates,)
    owner: IntArray  # (row,) which candidate a word belongs to

    @classmethod
    def of(cls, question: str, candidates: Sequence[str], vectors: WordVectors) -> TokenizedList:
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
    said = split_words_flat(texts)
    seen = dict.fromkeys(said)
    seen.pop(TEXT_SEPARATOR, None)
    if said[:1] in ([], [TEXT_SEPARATOR]):  # the first text has no words
        seen = {"": None} | seen
    number = dict(zip(seen, range(len(seen)), strict=True))
    number[TEXT_SEPARATOR] = -1
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
class LexicalMatches:
    """How the question's distinct words and the candidates' words meet."""

    related: FloatArray  # (asked, distinct): 1 for the very word, else cosine or shared start
    best: FloatArray  # (candidates, asked): the most related word that the candidate has
    counts: FloatArray  # (candidates, asked): how often the candidate has the very word
    rarity: FloatArray  # (asked,) in the language
    scarcity: FloatArray  # (asked,) in the list, near 0 for a word that all have, near 1 for none

    @classmethod
    def of(cls, listing: TokenizedList) -> LexicalMatches:
        """Compare each question word with each distinct word once, then look up."""
        asked, size = listing.question_size, len(listing.lengths)
        cosine = matmul(listing.vectors, listing.vectors[:asked].T)  # (distinct, asked)
        related = np.clip(cosine.T, 0.0, _NEARLY_SAME, order="C")
        _raise_inflections(related, listing.distinct, asked)
        real = np.array([word != "" for word in listing.distinct[:asked]])
        related[np.arange(asked), np.arange(asked)] = real
        # One question word at a time: its row is short and stays in the nearest cache.
        best = [np.maximum.reduceat(one.take(listing.words), listing.starts) for one in related]
        hit = listing.words < asked
        cells = listing.owner[hit] * asked + listing.words[hit]
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


_WORDS_AT_ONCE = 8_192  # bounds memory: a block has about as many padded words


@dataclass(frozen=True, slots=True, eq=False)
class PairBlock:
    """Some candidates of about one length, padded with the zero word."""

    rows: IntArray  # (block,) which candidates
    words: IntArray  # (block, longest)
    lengths: IntArray  # (block,)
    question_channels: FloatArray  # (block, question words, channels)
    candidate_channels: FloatArray  # (block, longest, channels)


@dataclass(frozen=True, slots=True, eq=False)
class PairFeatures:
    """All pairs of one question. Every text has at least one word, the zero word if no other."""

    lexicon: Lexicon
    question: IntArray  # (question words,)
    words: IntArray  # the candidates' words in a row
    starts: IntArray  # (candidates,)
    lengths: IntArray  # (candidates,)
    question_channels: FloatArray  # (candidates, question words, channels)
    candidate_channels: FloatArray  # (words in a row, channels)

    @classmethod
    def of(
        cls,
        question: str,
        candidates: Sequence[str],
        vectors: WordVectors,
        *,
        channels: Sequence[str],
    ) -> PairFeatures:
        """Number the distinct words, look them up once, compute the channels."""
        texts = [split_words(text) for text in (question, *candidates)]
        number = {
            word: row
            for row, word in enumerate(dict.fromkeys(w for text in texts for w in text), start=1)
        }
        lexicon = Lexicon.of(vectors.of(list(number)), vectors.idf(list(number)))
        ask, *say = [np.array([number[word] for word in text] or [0], np.int64) for text in texts]
        lengths = np.array([len(text) for text in say], np.int64)
        flat, starts = np.concatenate(say), np.cumsum(lengths) - lengths
        asked, said = pair_channels(channels, lexicon, ask, flat, starts)
        return cls(lexicon, ask, flat, starts, lengths, asked, said)

    def blocks(self) -> Iterator[PairBlock]:
        """The candidates, shortest first, in blocks that waste little on padding."""
        order = np.argsort(self.lengths, kind="stable")
        while len(order):
            # As many as fit when each is padded to the longest of them.
            fits = np.arange(1, len(order) + 1) * self.lengths[order] <= _WORDS_AT_ONCE
            count = max(1, int(fits.sum()))
            yield self._block(order[:count])
            order = order[count:]

    def _block(self, rows: IntArray) -> PairBlock:
        lengths = self.lengths[rows]
        place = np.arange(lengths.max())
        inside = place < lengths[:, None]
        at = np.where(inside, self.starts[rows, None] + place, 0)
        said = self.candidate_channels[at] * inside[..., None]
        return PairBlock(rows, self.words[at] * inside, lengths, self.question_channels[rows], said)
