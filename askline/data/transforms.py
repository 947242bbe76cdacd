"""
Transform question sets: filter the questions, and pad candidate lists with negatives.

Padding adds sentences of other questions as negatives, as in ASNQ++, which was made from ASNQ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UnknownNameError
from ..text.words import normalize
from ..types import Candidate, Question, QuestionSet

__all__ = [
    "FILTERS",
    "Filter",
    "filter_questions",
    "pad",
]

Filter = Literal["all", "answerable", "both"]

FILTERS: tuple[str, ...] = get_args(Filter)


def filter_questions(question_set: QuestionSet, which: Filter | str) -> QuestionSet:
    """
    The questions that pass the filter, in order; the name of the set stays.

    "answerable" requires at least one answer among the candidates; "both" requires an answer and a
    negative, as in the "clean" TrecQA sets. Filtered questions do not count in any mean, so results
    with different filters are not comparable.
    """
    if which not in _FILTER_FUNCTIONS:
        raise UnknownNameError("filter", which, FILTERS)
    passes = _FILTER_FUNCTIONS[which]
    return replace(question_set, questions=tuple(filter(passes, question_set.questions)))


def pad(
    question_set: QuestionSet, to: int, *, seed: int = 0, same_topic: bool = False
) -> QuestionSet:
    """
    Pad every candidate list to `to` candidates; lists that are as long or longer stay unchanged.

    - Sentences of other questions of the set are added as negatives, each at most once. Excluded
      are sentences that the question has already, and answers to a question of the same text.
      Texts that differ only in case or white space are equal here.
    - The added sentences were never judged for the question. If questions share a topic, some of
      them are answers: 23 of the 68 questions of TrecQA's clean test set have a sentence in their
      own series that contains their gold phrase and was not judged for them. So no sentence of the
      question's own topic is added, unless `same_topic` is true.
    - The question's own candidates keep their order, and the added ones are put between them at
      random positions: at the end, a ranker that uses the order would recognize them.
    - The random draw depends on the seed, the id of the question and the texts of the set, not on
      the order of the questions. Filter after padding: a filtered set has fewer texts.
    - The id of an added candidate is `pad:`, the id of its question, `/` and its id there.

    Raises InputError if the set has too few texts for one of its questions.
    """
    if to < 1:
        raise InputError(f"`to` must be at least 1, got {to}.")
    if seed < 0:
        raise InputError(f"`seed` must be at least 0, got {seed}.")
    pool = _Pool.of(question_set)
    excluded = [pool.excluded(question, same_topic) for question in question_set]
    _check_pool_size(question_set, excluded, len(pool.candidates), to)
    questions = (
        _pad_question(question, pool.candidates, indexes, to, seed)
        for question, indexes in zip(question_set, excluded, strict=True)
    )
    return replace(question_set, questions=tuple(questions))


def _has_both_labels(question: Question) -> bool:
    return len({candidate.is_answer for candidate in question.candidates}) == 2


_FILTER_FUNCTIONS: dict[str, Callable[[Question], bool]] = {
    "all": lambda _: True,
    "answerable": lambda question: question.answerable,
    "both": _has_both_labels,
}


@dataclass(frozen=True, slots=True)
class _Pool:
    """The distinct texts of a set as negatives, sorted by text."""

    candidates: NDArray[np.object_]  # (distinct texts,)
    indexes: dict[str, int]  # of every text that is not blank, among the candidates
    answers: dict[str, set[int]]  # indexes of the answers to a question, by the question's key
    topics: dict[str, set[int]]  # indexes of all texts of the questions of a topic

    @classmethod
    def of(cls, question_set: QuestionSet) -> _Pool:
        origins = _origins(question_set)
        keys = sorted(origins)
        candidates = np.empty(len(keys), dtype=object)
        candidates[:] = _negatives([origins[key] for key in keys])
        index_of_key = {key: index for index, key in enumerate(keys)}
        indexes: dict[str, int] = {}
        answers: defaultdict[str, set[int]] = defaultdict(set)
        topics: defaultdict[str, set[int]] = defaultdict(set)
        for question in question_set:
            for candidate in question.candidates:
                if candidate.text not in indexes and (key := _key(candidate.text)):
                    indexes[candidate.text] = index_of_key[key]
                if candidate.text not in indexes:
                    continue
                if question.topic:
                    topics[question.topic].add(indexes[candidate.text])
                if candidate.is_answer:
                    answers[_key(question.text)].add(indexes[candidate.text])
        return cls(candidates, indexes, dict(answers), dict(topics))

    def excluded(self, question: Question, same_topic: bool) -> list[int]:
        """The indexes of the texts that must not be added to this question."""
        found = {self.indexes[text] for text in question.texts if text in self.indexes}
        found |= self.answers.get(_key(question.text), set())
        if not same_topic:
            found |= self.topics.get(question.topic, set())
        return list(found)


Origin = tuple[str, str, Candidate]
"""The id of a question, the id of one of its candidates, and that candidate."""


def _origins(question_set: QuestionSet) -> dict[str, Origin]:
    """The origin of each distinct text by its key: the one with the smallest ids."""
    keys: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    for question in question_set:
        for candidate in question.candidates:
            text = candidate.text
            key = keys[text] if text in keys else keys.setdefault(text, _key(text))
            origin = (question.id, candidate.id, candidate)
            if key and (key not in origins or origin[:2] < origins[key][:2]):
                origins[key] = origin
    return origins


def _negatives(origins: list[Origin]) -> list[Candidate]:
    taken: set[str] = set()
    negatives = []
    for question_id, candidate_id, candidate in origins:
        new_id = f"pad:{question_id}/{candidate_id}"
        while new_id in taken:  # only if ids contain a slash themselves
            new_id += "'"
        taken.add(new_id)
        negatives.append(replace(candidate, id=new_id, is_answer=False))
    return negatives


def _key(text: str) -> str:
    return " ".join(normalize(text).split())


def _check_pool_size(
    question_set: QuestionSet, excluded: list[list[int]], size: int, to: int
) -> None:
    possible = [
        (len(question.candidates) + size - len(indexes), question.id)
        for question, indexes in zip(question_set, excluded, strict=True)
    ]
    fewest, question_id = min(possible, default=(to, ""))
    if fewest < to:
        raise InputError(
            f"Cannot pad to {to}: {question_set.name} has {size} distinct texts, so question "
            f"{question_id!r} can get at most {fewest} candidates. Pad to {fewest} or fewer, or "
            "pad before filtering."
        )


def _pad_question(
    question: Question, pool: NDArray[np.object_], excluded: list[int], to: int, seed: int
) -> Question:
    own = len(question.candidates)
    if own >= to:
        return question
    digest = blake2b(question.id.encode(), digest_size=8).digest()
    generator = np.random.default_rng([seed, int.from_bytes(digest, "big")])
    # Draws as many more as are excluded, and then removes the excluded ones.
    draw = generator.choice(len(pool), min(len(pool), to - own + len(excluded)), replace=False)
    is_excluded = np.zeros(len(pool), dtype=bool)
    is_excluded[excluded] = True
    added = draw[~is_excluded[draw]][: to - own]
    is_own = np.zeros(to, dtype=bool)
    is_own[generator.choice(to, own, replace=False)] = True
    candidates = np.empty(to, dtype=object)
    candidates[is_own] = question.candidates
    candidates[~is_own] = pool[added]
    return replace(question, candidates=tuple(candidates.tolist()))
