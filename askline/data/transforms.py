"""
Which questions of a set count: all, those with an answer, or those with labels of both kinds.

Longer candidate lists: other questions' sentences as negatives, as ASNQ++ was made of ASNQ.
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
    The questions that pass, in order, under the same name.

    "answerable" asks for at least one answer among the candidates, "both" for at least one that is
    none as well: the "clean" of the TrecQA literature. A question that fails is left out of every
    average, so figures over different filters do not compare.
    """
    if which not in _TESTS:
        raise UnknownNameError("filter", which, FILTERS)
    passes = _TESTS[which]
    return replace(question_set, questions=tuple(filter(passes, question_set.questions)))


def _has_both(question: Question) -> bool:
    return len({candidate.is_answer for candidate in question.candidates}) == 2


_TESTS: dict[str, Callable[[Question], bool]] = {
    "all": lambda _: True,
    "answerable": lambda question: question.answerable,
    "both": _has_both,
}


def pad(
    question_set: QuestionSet, to: int, *, seed: int = 0, same_topic: bool = False
) -> QuestionSet:
    """
    Every question with `to` candidates; one that has as many or more stays as it is.

    - Added are texts of other questions of this set, as negatives, each at most once. Never one
      that the question has already, nor one that answers a question of the same text. Texts and
      questions that differ in case or white space only are the same here.
    - What is added counts as wrong and was never judged. Where questions share a topic, some of it
      would answer: 23 of the 68 questions of TrecQA's clean test have a sentence in their own
      series that holds their gold phrase and was not judged for them. So nothing of the question's
      own topic is added, unless `same_topic` asks for it.
    - The own candidates keep their order, and the added ones stand between them at random places:
      at the end of the list they would give themselves away to any ranker that reads the order.
    - The draw hangs on the seed, the question's id and the texts of the set, not on the order of
      the questions. Filter afterwards: a filtered set has fewer texts to draw from.
    - An added candidate's id is `pad:`, the question it came from, `/` and its id there.

    Raises InputError where the set has too few texts for one of its questions.
    """
    if to < 1:
        raise InputError(f"to must be at least 1, got {to}.")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}.")
    pool = _Pool.of(question_set)
    barred = [pool.barred(question, same_topic) for question in question_set]
    _check_size(question_set, barred, len(pool.candidates), to)
    questions = (
        _padded(question, pool.candidates, places, to, seed)
        for question, places in zip(question_set, barred, strict=True)
    )
    return replace(question_set, questions=tuple(questions))


@dataclass(frozen=True, slots=True)
class _Pool:
    """The different texts of a set as negatives, in an order that is the texts' own."""

    candidates: NDArray[np.object_]  # (different texts,)
    places: dict[str, int]  # of every text that is not blank, among the candidates
    answers: dict[str, set[int]]  # the places of the texts that answer a question, by its key
    topics: dict[str, set[int]]  # the places of all texts of a topic's questions

    @classmethod
    def of(cls, question_set: QuestionSet) -> _Pool:
        origins = _origins(question_set)
        keys = sorted(origins)
        candidates = np.empty(len(keys), dtype=object)
        candidates[:] = _negatives([origins[key] for key in keys])
        rank = {key: place for place, key in enumerate(keys)}
        places: dict[str, int] = {}
        answers: defaultdict[str, set[int]] = defaultdict(set)
        topics: defaultdict[str, set[int]] = defaultdict(set)
        for question in question_set:
            for candidate in question.candidates:
                if candidate.text not in places and (key := _key(candidate.text)):
                    places[candidate.text] = rank[key]
                if candidate.text not in places:
                    continue
                if question.topic:
                    topics[question.topic].add(places[candidate.text])
                if candidate.is_answer:
                    answers[_key(question.text)].add(places[candidate.text])
        return cls(candidates, places, dict(answers), dict(topics))

    def barred(self, question: Question, same_topic: bool) -> list[int]:
        """The places of the texts that must not be added to this question."""
        own = {self.places[text] for text in question.texts if text in self.places}
        own |= self.answers.get(_key(question.text), set())
        if not same_topic:
            own |= self.topics.get(question.topic, set())
        return list(own)


Origin = tuple[str, str, Candidate]  # the question's id, the candidate's, and the candidate


def _origins(question_set: QuestionSet) -> dict[str, Origin]:
    """Every different text by its key, each from the question that comes first by its id."""
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
        while new_id in taken:  # only where ids hold a slash themselves
            new_id += "'"
        taken.add(new_id)
        negatives.append(replace(candidate, id=new_id, is_answer=False))
    return negatives


def _key(text: str) -> str:
    return " ".join(normalize(text).split())


def _check_size(question_set: QuestionSet, barred: list[list[int]], size: int, to: int) -> None:
    reach = [
        (len(question.candidates) + size - len(places), question.id)
        for question, places in zip(question_set, barred, strict=True)
    ]
    least, question_id = min(reach, default=(to, ""))
    if least < to:
        raise InputError(
            f"Cannot pad to {to}: {question_set.name} has {size} different texts, which give "
            f"question {question_id!r} {least} candidates at most. Pad to {least} or fewer, or pad "
            "before filtering."
        )


def _padded(
    question: Question, pool: NDArray[np.object_], barred: list[int], to: int, seed: int
) -> Question:
    own = len(question.candidates)
    if own >= to:
        return question
    digest = blake2b(question.id.encode(), digest_size=8).digest()
    generator = np.random.default_rng([seed, int.from_bytes(digest, "big")])
    # Drawn with as many to spare as could be barred; those that are fall out again.
    draw = generator.choice(len(pool), min(len(pool), to - own + len(barred)), replace=False)
    is_barred = np.zeros(len(pool), dtype=bool)
    is_barred[barred] = True
    added = draw[~is_barred[draw]][: to - own]
    is_own = np.zeros(to, dtype=bool)
    is_own[generator.choice(to, own, replace=False)] = True
    candidates = np.empty(to, dtype=object)
    candidates[is_own] = question.candidates
    candidates[~is_own] = pool[added]
    return replace(question, candidates=tuple(candidates.tolist()))
