"""Which questions of a set count: all, those with an answer, or those with labels of both kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

from ..errors import UnknownNameError
from ..types import Question, QuestionSet

__all__ = ["FILTERS", "Filter", "select"]

Filter = Literal["all", "answerable", "both"]

FILTERS: tuple[str, ...] = get_args(Filter)


def select(question_set: QuestionSet, which: Filter | str) -> QuestionSet:
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
