"""Every ranker that a spec may name keeps the contract, alone and in pipelines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

import askline
from askline.rankers.base import Ranker
from askline.rankers.deadline import Stop
from askline.rankers.requests import Request
from askline.testing import CHECKS, check_ranker
from askline.types import Document, Hit, Ranking, StageReport

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


SPECS = [
    pytest.param(spec, marks=pytest.mark.slow if "cascade" in spec else ())
    for spec in [*sorted(set(askline.ranker_names()) - NEED_A_FOLDER), *PIPELINES]
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spec", SPECS)
def test_ranker_keeps_the_contract(spec: str, check: Callable[[Ranker], None]) -> None:
    check(askline.load(spec))


class _Broken(Ranker):
    """The original order; each subclass breaks one rule."""

    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        return [Ranking(tuple(self.hits(request)), (REPORT,)) for request in requests]

    def hits(self, request: Request) -> list[Hit]:
        return [Hit(place, -float(place)) for place in range(len(request.texts))]


REPORT = StageReport("broken", 0, 0, 0.0)


class _LosesOne(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        return super().hits(request)[:-1]


class _Doubles(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        hits = super().hits(request)
        return hits + hits[:1]


class _InventsForNothing(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        return super().hits(request) or [Hit(0, 0.0)]


class _WorstFirst(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        return super().hits(request)[::-1]


class _TiesReversed(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        return [Hit(hit.index, 0.0) for hit in reversed(super().hits(request))]


class _NotANumber(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        return [Hit(hit.index, float("nan")) for hit in super().hits(request)]


class _Remembers(_Broken):
    def __init__(self) -> None:
        self.calls = 0

    def hits(self, request: Request) -> list[Hit]:
        self.calls += 1
        return [Hit(hit.index, hit.score + self.calls) for hit in super().hits(request)]


class _FailsOnBlankTexts(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        assert all(text.split()[0] for text in request.texts if text)
        return super().hits(request)


class _MixesRequestsUp(_Broken):
    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        return super().run_batch(requests[::-1], stop)


class _ForgetsEmptyLists(_Broken):
    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        several = len(requests) > 1
        return super().run_batch([one for one in requests if one.texts or not several], stop)


class _SharesStateBetweenThreads(_Broken):
    def __init__(self) -> None:
        self.question = ""

    def hits(self, request: Request) -> list[Hit]:
        self.question = request.question
        time.sleep(0.002)
        last = float(self.question[-1] if self.question[-1].isdigit() else 0)
        return [Hit(hit.index, hit.score - last) for hit in super().hits(request)]


class _ImpossibleProbability(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        return [Hit(hit.index, hit.score, 0, 1.5) for hit in super().hits(request)]


class _UnreportedStage(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        return [Hit(hit.index, hit.score, 7) for hit in super().hits(request)]


class _LosesAllUnderADeadline(_Broken):
    def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
        return super().run_batch(requests, stop) if stop is None else [Ranking((), (REPORT,))]


class _ScoresPairsByTheirList(_Broken):
    listwise = False

    def hits(self, request: Request) -> list[Hit]:
        return [Hit(hit.index, hit.score - len(request.texts)) for hit in super().hits(request)]


class _TakesBlankQuestions(_Broken):
    def rank(self, question: str, documents: Iterable[Document], **options: Any) -> list[Hit]:
        return super().rank(question.strip() or "?", documents, **options)


class _TakesAString(_Broken):
    def rank(self, question: str, documents: Iterable[Document], **options: Any) -> list[Hit]:
        if isinstance(documents, str):
            documents = list(documents)
        return super().rank(question, documents, **options)


class _SortsTheCallersList(_Broken):
    def rank(self, question: str, documents: Iterable[Document], **options: Any) -> list[Hit]:
        if isinstance(documents, list) and all(isinstance(one, str) for one in documents):
            documents.sort()
        return super().rank(question, documents, **options)


class _IgnoresTopK(_Broken):
    def rank(self, question: str, documents: Iterable[Document], **options: Any) -> list[Hit]:
        return super().rank(question, documents, **{**options, "top_k": None})


class _ScoresInRankOrder(_Broken):
    def hits(self, request: Request) -> list[Hit]:
        return [Hit(hit.index, float(hit.index)) for hit in super().hits(request)[::-1]]

    def score(self, *args: Any, **options: Any) -> Any:
        return super().score(*args, **options)[::-1]


@pytest.mark.parametrize(
    "broken",
    [own for own in _Broken.__subclasses__() if own.__module__ == __name__],
    ids=lambda own: own.__name__.lstrip("_"),
)
def test_suite_catches_a_broken_ranker(broken: type[_Broken]) -> None:
    with pytest.raises((AssertionError, IndexError, ValueError)):
        check_ranker(broken())


def test_suite_passes_a_correct_ranker() -> None:
    check_ranker(_Broken())


def test_suite_passes_a_scoring_function() -> None:
    check_ranker(Ranker.from_function(lambda question, texts: [len(text) for text in texts]))
