"""
Candidate lists to learn from: a paragraph's own sentences, alone or among many from elsewhere.

A filter gets candidates of retrieval as well as of one paragraph, so there are lists of both kinds.
Sentences from elsewhere come from the same source, else the style of a text would tell them apart.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askline.engine.lexical_features import feature_matrix
from askline.engine.lexical_matches import LexicalMatches, TokenizedList
from askline.engine.numpy_ops import FloatArray, IntArray
from askline.models.light_config import MAX_CANDIDATE_WORDS
from askline.models.word_vectors import WordVectors
from askline.types import Question, QuestionSet

__all__ = [
    "Example",
    "Vocabulary",
    "examples",
]

_ADDED = ((0.45, 0), (0.75, 25), (0.97, 100), (1.0, 300))
"""(cumulative share of the questions, sentences added from other texts)."""

_KEPT = 24
"""Candidates of a list that are learned from: answers, the likeliest others, and a sample."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A question with some candidates of its list, the answers first."""

    answers: int
    log_weight: (
        FloatArray  # (candidates,) log of the number of candidates that a sampled one represents
    )
    features: FloatArray  # (candidates, features)
    asked: IntArray  # (question words,) numbers of the vocabulary
    scarcity: FloatArray  # (question words,)
    best: FloatArray  # (candidates, question words)
    exact: NDArray[np.bool_]  # (candidates, question words)
    said: tuple[IntArray, ...]  # the words of each candidate
    related: tuple[FloatArray, ...]  # of each word to the question


class Vocabulary:
    """Words by number, in the order first met; the empty word is number 0."""

    def __init__(self) -> None:
        self._number = {"": 0}

    def numbers(self, words: Sequence[str]) -> IntArray:
        """The number of each word, a new one for a new word."""
        take = self._number.setdefault
        return np.array([take(word, len(self._number)) for word in words], np.int64)

    def table(self, vectors: WordVectors) -> tuple[FloatArray, FloatArray]:
        """Vectors and rarities, in the order of the numbers."""
        words = list(self._number)
        rows, rarity = vectors.of(words), vectors.idf(words)
        rows[0] = rarity[0] = 0.0
        return rows, rarity


def examples(
    sets: Sequence[QuestionSet], vectors: WordVectors, vocabulary: Vocabulary, *, seed: int
) -> Iterator[Example]:
    """One for each answerable question."""
    draw = random.Random(seed)
    pools: dict[tuple[str, bool], list[str]] = {}
    for own in sets:
        for question in own:
            pools.setdefault(_source(own, question), []).extend(question.texts)
    for source, texts in pools.items():
        pools[source] = list(dict.fromkeys(texts))
    for own in sets:
        for question in own:
            if question.answerable:
                texts = _list(question, pools[_source(own, question)], draw)
                yield _example(question, texts, vectors, vocabulary, draw)


def _source(own: QuestionSet, question: Question) -> tuple[str, bool]:
    return own.name, question.candidates[0].text.islower()


def _list(question: Question, pool: Sequence[str], draw: random.Random) -> list[str]:
    """The question's own texts, then those from elsewhere. A lone answer always gets some."""
    own = question.texts
    drawn = draw.random()
    count = next(number for share, number in _ADDED if drawn <= share)
    if len(own) == 1:
        count = max(count, _ADDED[1][1])
    elsewhere = draw.sample(pool, min(count, len(pool)))
    return own + [text for text in elsewhere if text not in set(own)]


def _example(
    question: Question,
    texts: Sequence[str],
    vectors: WordVectors,
    vocabulary: Vocabulary,
    draw: random.Random,
) -> Example:
    listing = TokenizedList.of(question.text, texts, vectors)
    matches = LexicalMatches.of(listing)
    direct = feature_matrix(listing, matches)
    labels = [candidate.is_answer for candidate in question.candidates]
    chosen, log_weight = _chosen(direct[:, 1] + 0.5 * direct[:, 3], labels, draw)
    number = vocabulary.numbers(listing.distinct)
    related = matches.related.max(axis=0)
    rows = [
        listing.words[start : start + min(length, MAX_CANDIDATE_WORDS)]
        for start, length in _spans(listing, chosen)
    ]
    return Example(
        answers=sum(labels),
        log_weight=log_weight,
        features=direct[chosen],
        asked=number[: listing.question_size],
        scarcity=matches.scarcity,
        best=matches.best[chosen],
        exact=matches.counts[chosen] > 0,
        said=tuple(number[row] for row in rows),
        related=tuple(related[row] for row in rows),
    )


def _spans(listing: TokenizedList, chosen: Sequence[int]) -> list[tuple[int, int]]:
    return [(int(listing.starts[place]), int(listing.lengths[place])) for place in chosen]


def _chosen(
    promise: FloatArray, labels: Sequence[bool], draw: random.Random
) -> tuple[list[int], FloatArray]:
    """
    All answers, the most promising others, and some of the rest with the weight of all of them.

    Without the weights the others would look more promising than those of a real list, and the
    network would learn to mistrust what is promising.
    """
    answers = [place for place, answer in enumerate(labels) if answer]
    others = [place for place in range(len(promise)) if not (place < len(labels) and labels[place])]
    others.sort(key=lambda place: -promise[place])
    room = max(2, _KEPT - len(answers))
    if len(others) <= room:
        return answers + others, np.zeros(len(answers) + len(others), np.float32)
    top, rest = others[: room // 2], others[room // 2 :]
    sample = draw.sample(rest, room - len(top))
    weights = np.zeros(len(answers) + room, np.float32)
    weights[-len(sample) :] = math.log(len(rest) / len(sample))
    return answers + top + sample, weights
