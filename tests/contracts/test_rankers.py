"""Every ranker that a spec may name keeps the contract, alone and in pipelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import askline
from askline.testing import CHECKS, check_ranker
from askline.types import Hit, Ranker

# These have no weights of their own; tests/rankers runs the suite over tiny folders of theirs.
NEED_A_FOLDER = {"compare-aggregate", "relational-cnn"}
PIPELINES = [
    "wo(ties=original)",
    "wo(ties=reversed)",
    "jaccard % 3",
    "jaccard % 100 >> bm25",
    "wo % 4 >> rr % 2 >> bm25",
    "(wo % 2 >> rr) % 3 >> jaccard",
    "cosinet % 3 >> cascade",
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spec", [*sorted(set(askline.ranker_names()) - NEED_A_FOLDER), *PIPELINES])
def test_ranker_keeps_the_contract(spec: str, check: Callable[[Ranker], None]) -> None:
    check(askline.load(spec))


class _Broken:
    """A ranker of the original order, to be spoiled by one rule each."""

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        if isinstance(candidates, str):
            raise TypeError("a list, please")
        return [Hit(place, -float(place)) for place in range(len(candidates))]


class _LosesOne(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return super().rank(question, candidates)[:-1]


class _Doubles(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        hits = super().rank(question, candidates)
        return hits + hits[:1]


class _InventsForNothing(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return super().rank(question, candidates) or [Hit(0, 0.0)]


class _WorstFirst(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return super().rank(question, candidates)[::-1]


class _TiesReversed(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return [Hit(hit.index, 0.0) for hit in reversed(super().rank(question, candidates))]


class _NotANumber(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return [Hit(hit.index, float("nan")) for hit in super().rank(question, candidates)]


class _Remembers(_Broken):
    def __init__(self) -> None:
        self.calls = 0

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        self.calls += 1
        return [
            Hit(hit.index, hit.score + self.calls) for hit in super().rank(question, candidates)
        ]


class _SortsTheCallersList(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        if isinstance(candidates, list):
            candidates.sort()
        return super().rank(question, candidates)


class _TakesAString(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        return super().rank(question, list(candidates))


class _ChokesOnBlank(_Broken):
    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        assert all(text.split()[0] for text in candidates if text)
        return super().rank(question, candidates)


class _MixesQuestionsUp(_Broken):
    def rank_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> list[list[Hit]]:
        return [self.rank(*request) for request in reversed(requests)]


class _ForgetsEmptyLists(_Broken):
    def rank_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> list[list[Hit]]:
        return [self.rank(*request) for request in requests if request[1]]


@pytest.mark.parametrize(
    "broken",
    [
        _LosesOne,
        _Doubles,
        _InventsForNothing,
        _WorstFirst,
        _TiesReversed,
        _NotANumber,
        _Remembers,
        _SortsTheCallersList,
        _TakesAString,
        _ChokesOnBlank,
        _MixesQuestionsUp,
        _ForgetsEmptyLists,
    ],
)
def test_suite_catches_a_broken_ranker(broken: type[_Broken]) -> None:
    with pytest.raises((AssertionError, IndexError)):
        check_ranker(broken())


def test_suite_passes_a_ranker_that_knows_nothing_of_askline() -> None:
    check_ranker(_Broken())
