"""
Word matches between a question and its candidates: the inputs of the light rankers.

- `TokenizedList` and `LexicalMatches` describe a whole list of candidates, for the first stage.
- `feature_matrix` computes the first stage's lexical features from them, each about 0 to 1. There,
  words are weighted by the square of their rarity, so that "the" counts for nothing. The feedback
  features are pseudo-relevance feedback: they compare a candidate with what the most promising
  candidates have in common, and so raise sentences about the same subject that lack the question's
  own words.
- `PairFeatures` holds the word vectors and match channels of all pairs of a question, for Cosinet,
  Compare-Aggregate and the relational CNN.

Words are numbers into a table of distinct words. Nothing here depends on the order of the
candidates. How rare a word is counts twice: in the language, from the word vectors, and in the
list, because a short list says little about rarity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.word_vectors import WordVectors
from ..text.words import TEXT_SEPARATOR, split_words, split_words_flat
from .numpy_ops import FloatArray, IntArray, matmul, weighted_sum

__all__ = [
    "LexicalMatches",
    "Lexicon",
    "PairBlock",
    "PairFeatures",
    "TokenizedList",
    "feature_matrix",
    "pair_channels",
]

_INFLECTION_WEIGHT = 0.9  # times the shared share of a word: "olmecs" and "olmec" get 0.75
_MIN_SHARED_PREFIX = 0.7
_MAX_DIFFERENT = 0.99  # relatedness of different words; 1 means the same word
_BLOCK_WORDS = 8_192  # bounds memory: padded words of a block


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedList:
    """
    A question and its candidates as numbers of distinct words, the question's words first.

    A text without words has a single empty word, whose vector is zero and which matches no word.
    """

    distinct: list[str]
    vectors: FloatArray  # (distinct, dimensions), of length 1
    rarity: FloatArray  # (distinct,)
    question: IntArray  # (words of the question,), repeated words included
    question_size: int  # number of distinct words of the question
    words: IntArray  # the words of all candidates in a row
    lengths: IntArray  # (candidates,)
    starts: IntArray  # (candidates,) in `words`
    owner: IntArray  # (words,) the candidate of each word

    @classmethod
    def of(cls, question: str, candidates: Sequence[str], vectors: WordVectors) -> TokenizedList:
        """Split the texts into words and look up each distinct word once."""
        distinct, words, lengths = _number_words((question, *candidates))
        table, rarity = vectors.look_up(distinct)
        for end in (0, -1):  # the empty word, if there is one, is the first or the last
            if distinct[end] == "":
                table[end] = rarity[end] = 0.0
        own, words, lengths = words[: lengths[0]], words[lengths[0] :], lengths[1:]
        return cls(
            distinct,
            table,
            rarity,
            own,
            int(own.max()) + 1,
            words,
            lengths,
            np.cumsum(lengths) - lengths,
            np.repeat(np.arange(len(lengths)), lengths),
        )


def _number_words(texts: Sequence[str]) -> tuple[list[str], IntArray, IntArray]:
    """The distinct words in order of appearance, the words of all texts, and their counts."""
    flat = split_words_flat(texts)
    distinct = dict.fromkeys(flat)
    distinct.pop(TEXT_SEPARATOR, None)
    if flat[:1] in ([], [TEXT_SEPARATOR]):  # the first text has no words
        distinct = {"": None} | distinct
    numbers = dict(zip(distinct, range(len(distinct)), strict=True))
    numbers[TEXT_SEPARATOR] = -1
    words = np.fromiter(map(numbers.__getitem__, flat), np.int64, len(flat))
    ends = np.flatnonzero(words < 0)
    lengths = np.diff(ends, prepend=-1, append=len(words)) - 1
    words = words[words >= 0]
    empty = np.flatnonzero(lengths == 0)
    if len(empty):
        empty_word = list(distinct | {"": None}).index("")
        words = np.insert(words, np.cumsum(lengths)[empty], empty_word)
        lengths[empty] = 1
        distinct |= {"": None}
    return list(distinct), words, lengths


@dataclass(frozen=True, slots=True, eq=False)
class LexicalMatches:
    """How the question's distinct words match the candidates' words."""

    related: FloatArray  # (question, distinct): 1 for the same word, else cosine or shared prefix
    best: FloatArray  # (candidates, question): the most related word of the candidate
    counts: FloatArray  # (candidates, question): occurrences of the word itself
    rarity: FloatArray  # (question,) in the language
    scarcity: FloatArray  # (question,) in the list: 0 if all candidates have the word, 1 if none

    @classmethod
    def of(cls, listing: TokenizedList) -> LexicalMatches:
        """Compare each question word with each distinct word once."""
        size, candidates = listing.question_size, len(listing.lengths)
        cosine = matmul(listing.vectors, listing.vectors[:size].T)  # (distinct, question)
        related = np.clip(cosine.T, 0.0, _MAX_DIFFERENT, order="C")
        _raise_inflections(related, listing.distinct, size)
        is_word = np.array([word != "" for word in listing.distinct[:size]])
        related[np.arange(size), np.arange(size)] = is_word
        # One question word at a time: its row is short and stays in the cache.
        best = [np.maximum.reduceat(row.take(listing.words), listing.starts) for row in related]
        in_question = listing.words < size
        cells = listing.owner[in_question] * size + listing.words[in_question]
        counts = np.bincount(cells, minlength=candidates * size).reshape(candidates, size) * is_word
        having = (counts > 0).sum(axis=0)
        scarcity = np.log1p((candidates - having + 0.5) / (having + 0.5))
        scarcity = scarcity / np.log1p(candidates + 1.0)
        return cls(
            related,
            np.stack(best, axis=1),
            counts.astype(np.float32),
            listing.rarity[:size],
            scarcity.astype(np.float32),
        )


def _raise_inflections(related: FloatArray, distinct: Sequence[str], question_size: int) -> None:
    """Raise `related`, in place, for words with a common prefix, whatever their vectors say."""
    by_prefix: dict[str, list[int]] = {}
    for number, word in enumerate(distinct[:question_size]):
        if len(word) > 2 and not word[0].isdigit():
            by_prefix.setdefault(word[:3], []).append(number)
    for column, word in enumerate(distinct):
        for number in by_prefix.get(word[:3], ()):
            share = _shared_prefix(word, distinct[number])
            if share >= _MIN_SHARED_PREFIX:
                related[number, column] = max(related[number, column], _INFLECTION_WEIGHT * share)


def _shared_prefix(one: str, other: str) -> float:
    """The length of the common prefix, as a share of the longer word."""
    same = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        same += 1
    return same / max(len(one), len(other))


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """A table of distinct words. Row 0 is the zero word, which matches no word, not even itself."""

    vectors: FloatArray  # (words, dimensions)
    unit: FloatArray  # (words, dimensions), each row of length 1 or 0
    idf: FloatArray  # (words,)

    @classmethod
    def of(cls, vectors: FloatArray, idf: FloatArray) -> Lexicon:
        """The table of these words, which get the numbers from 1 on."""
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
    The match channels of the question's words per candidate, and of the candidates' words.

    `candidates` are the words of all candidates in a row, `starts` where each one begins; no
    candidate is empty. Returns (candidates, question words, channels) and (words, channels).
    """
    of_question = np.empty((len(starts), len(question), len(names)), np.float32)
    of_candidates = np.empty((len(candidates), len(names)), np.float32)
    if not names:
        return of_question, of_candidates
    distinct, place = np.unique(candidates, return_inverse=True)
    cosine = (lexicon.unit[question] @ lexicon.unit[distinct].T)[:, place]  # (question, words)
    match = (question[:, None] == candidates) & (candidates > 0)
    question_has_match = np.maximum.reduceat(match, starts, axis=1).T
    candidate_has_match = match.any(axis=0)
    for column, name in enumerate(names):
        if name == "related":
            of_question[..., column] = np.maximum.reduceat(cosine, starts, axis=1).T
            of_candidates[:, column] = cosine.max(axis=0)
        else:
            idf = name.endswith("idf")
            of_question[..., column] = lexicon.idf[question] if idf else 1.0
            of_candidates[:, column] = lexicon.idf[candidates] if idf else 1.0
            if name.startswith("exact"):
                of_question[..., column] *= question_has_match
                of_candidates[:, column] *= candidate_has_match
    return of_question, of_candidates


@dataclass(frozen=True, slots=True, eq=False)
class PairFeatures:
    """All pairs of one question. A text without words has the zero word."""

    lexicon: Lexicon
    question: IntArray  # (question words,)
    words: IntArray  # the words of all candidates in a row
    starts: IntArray  # (candidates,) in `words`
    lengths: IntArray  # (candidates,)
    question_channels: FloatArray  # (candidates, question words, channels)
    candidate_channels: FloatArray  # (words, channels)

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
        distinct = dict.fromkeys(word for text in texts for word in text)
        numbers = {word: row for row, word in enumerate(distinct, start=1)}
        lexicon = Lexicon.of(vectors.of(list(numbers)), vectors.idf(list(numbers)))
        own, *others = [
            np.array([numbers[word] for word in text] or [0], np.int64) for text in texts
        ]
        lengths = np.array([len(words) for words in others], np.int64)
        words, starts = np.concatenate(others), np.cumsum(lengths) - lengths
        of_question, of_candidates = pair_channels(channels, lexicon, own, words, starts)
        return cls(lexicon, own, words, starts, lengths, of_question, of_candidates)

    def blocks(self) -> Iterator[PairBlock]:
        """The candidates, shortest first, in blocks with little padding."""
        order = np.argsort(self.lengths, kind="stable")
        while len(order):
            # As many as fit if each one is padded to the longest of them.
            fits = np.arange(1, len(order) + 1) * self.lengths[order] <= _BLOCK_WORDS
            count = max(1, int(fits.sum()))
            yield self._block(order[:count])
            order = order[count:]

    def _block(self, rows: IntArray) -> PairBlock:
        lengths = self.lengths[rows]
        place = np.arange(lengths.max())
        inside = place < lengths[:, None]
        at = np.where(inside, self.starts[rows, None] + place, 0)
        of_candidates = self.candidate_channels[at] * inside[..., None]
        words, of_question = self.words[at] * inside, self.question_channels[rows]
        return PairBlock(rows, words, lengths, of_question, of_candidates)


@dataclass(frozen=True, slots=True, eq=False)
class PairBlock:
    """Candidates of similar length, padded with the zero word."""

    rows: IntArray  # (block,) the numbers of the candidates
    words: IntArray  # (block, longest)
    lengths: IntArray  # (block,)
    question_channels: FloatArray  # (block, question words, channels)
    candidate_channels: FloatArray  # (block, longest, channels)


_BM25_K1, _BM25_B = 1.5, 0.75
_FEEDBACK_SHARPNESS = 12.0  # of the softmax over promising candidates

_WordSets = tuple[IntArray, IntArray]
"""Each distinct word of each candidate: the candidates' numbers and the words."""


def feature_matrix(listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
    """(candidates, features), with the columns of `models.light_config.FEATURES`."""
    exact = (matches.counts > 0).astype(np.float32)
    squared = matches.best**2
    general = matches.rarity**2
    local = (0.3 + matches.scarcity) * general
    covered_here = matmul(squared, _normalized(local))
    bm25 = _bm25(listing, matches)
    word_sets = _word_sets(listing)
    weight = listing.rarity**2  # (distinct,)
    related = matches.related.max(axis=0) ** 2 * weight
    mass = _sums(related, listing)
    weights = _sums(weight, listing) + np.float32(1e-3) * listing.lengths.astype(np.float32)
    centroid = _unit(general @ listing.vectors[: listing.question_size])
    columns: list[NDArray[np.floating[Any]]] = [
        matmul(squared, _normalized(general)),
        covered_here,
        matmul(exact, _normalized(local)),
        bm25,
        _jaccard(listing, exact, word_sets),
        _bigrams(listing),
        np.log1p(listing.lengths) / 4,
        mass / weights,
        mass / 5,
        _sums(matmul(listing.vectors, centroid) * weight, listing) / weights,
        *_heaviest_words(matches.best, local),
        *_feedback(listing, word_sets, covered_here + 0.5 * bm25, weight, weights),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _normalized(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / max(float(weights.sum()), 1e-6), np.float32)


def _unit(vector: NDArray[np.floating[Any]]) -> FloatArray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-6), np.float32)


def _sums(values: FloatArray, listing: TokenizedList) -> FloatArray:
    """Sum the (distinct,) values over the words of each candidate: (candidates,)."""
    return np.asarray(np.add.reduceat(values[listing.words], listing.starts), np.float32)


def _bm25(listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
    mean = max(float(listing.lengths.mean()), 1.0)
    norm = _BM25_K1 * (1 - _BM25_B + _BM25_B * listing.lengths / mean)
    saturated = matches.counts / (matches.counts + norm[:, None])
    return matmul(saturated.astype(np.float32), _normalized(matches.scarcity * matches.rarity))


def _jaccard(listing: TokenizedList, exact: FloatArray, word_sets: _WordSets) -> FloatArray:
    shared = exact.sum(axis=1)
    own = np.bincount(word_sets[0], minlength=len(listing.lengths))
    return np.asarray(shared / (listing.question_size + own - shared))


def _word_sets(listing: TokenizedList) -> _WordSets:
    cells = _unique(listing.owner * len(listing.distinct) + listing.words)
    owner, word = np.divmod(cells, len(listing.distinct))
    return owner, word


def _unique(cells: IntArray) -> IntArray:
    """As np.unique, whose hashing takes several times as long as sorting at these sizes."""
    cells = np.sort(cells)
    first = np.ones(len(cells), bool)
    np.not_equal(cells[1:], cells[:-1], out=first[1:])
    return cells[first]


def _bigrams(listing: TokenizedList) -> FloatArray:
    """The weighted share of the question's bigrams that the candidate has."""
    candidates, size = len(listing.lengths), listing.question_size
    if len(listing.question) < 2:
        return np.zeros(candidates, np.float32)
    bigrams = listing.question[:-1] * size + listing.question[1:]
    rarity = listing.rarity[listing.question]
    weights = np.zeros(size * size, np.float32)
    np.maximum.at(weights, bigrams, (rarity[:-1] + rarity[1:]) ** 2)
    left, right = listing.words[:-1], listing.words[1:]
    matching = np.flatnonzero(
        (left < size) & (right < size) & (listing.owner[:-1] == listing.owner[1:])
    )
    found = _unique(listing.owner[matching] * size * size + left[matching] * size + right[matching])
    sums = np.bincount(found // (size * size), weights[found % (size * size)], minlength=candidates)
    return np.asarray(sums / max(float(weights.sum()), 1e-6))


def _heaviest_words(best: FloatArray, weights: FloatArray) -> list[FloatArray]:
    """How well the three question words of greatest weight match; 1 if there are fewer."""
    order = np.argsort(-weights, kind="stable")[:3]
    columns = [best[:, place] for place in order]
    return columns + [np.ones(len(best), np.float32)] * (3 - len(columns))


def _feedback(
    listing: TokenizedList,
    word_sets: _WordSets,
    promise: FloatArray,
    weight: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The words and the direction that a candidate shares with the most promising ones."""
    candidates, distinct = len(listing.lengths), len(listing.distinct)
    trust = np.exp(_FEEDBACK_SHARPNESS * (promise - promise.max()))
    trust /= trust.sum()
    owner, word = word_sets
    having = np.bincount(word, minlength=distinct)
    scarcity = np.log((candidates + 1) / np.maximum(having, 1)) / np.log(candidates + 2)
    word_trust = np.bincount(word, trust[owner], minlength=distinct) * scarcity**2 * weight
    sums = np.bincount(owner, word_trust[word], minlength=candidates)
    shared = sums / np.sqrt(np.bincount(owner, minlength=candidates) + 5)
    frequency = np.bincount(
        listing.words, (trust / listing.lengths)[listing.owner], minlength=distinct
    )
    direction = _unit(weighted_sum((frequency * weight).astype(np.float32), listing.vectors))
    towards = _sums(matmul(listing.vectors, direction) * weight, listing) / weights
    top = max(float(shared.max()), 1e-9)
    return np.asarray(shared / top, np.float32), np.asarray(towards, np.float32)
