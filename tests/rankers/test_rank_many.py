"""Several questions at once: each gets what it gets alone."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.engine.encoder import OnnxEncoder
from askline.engine.layerwise import LayerwiseEncoder
from askline.engine.sequences import TokenSequences
from askline.errors import InputError
from askline.rankers import Cascade, Cut, OriginalOrder, WordOverlapThenOrder
from askline.rankers.base import Ranker
from askline.rankers.requests import Request
from askline.rankers.schedule import (
    DropFraction,
    KeepCounts,
    Schedule,
    Step,
    TunedRow,
    TunedSchedule,
)
from askline.types import Hit, Ranking

from ..engine.tiny_cascades import CANDIDATES, QUESTION, encoder, tiny_config
from .layerwise_encoders import WordEncoder

LONG = " ".join(f"she wrote novel {number}," for number in range(120))
REQUESTS: list[tuple[str, list[str]]] = [
    (QUESTION, CANDIDATES),
    ("who", []),
    ("who wrote it ?", [LONG, *CANDIDATES[:3]]),
    ("?", CANDIDATES[2:3]),
    ("what did she write when she was young ?", [*CANDIDATES, *CANDIDATES]),
]
# Plans differ by length: some questions wait at a depth that others are judged at.
LEARNED = TunedSchedule((1, 3), (TunedRow(4, ()), TunedRow(16, (Step(1, 4),))))


@pytest.fixture
def tiny(tmp_path: Path) -> OnnxEncoder:
    return encoder(tmp_path / "tiny", tiny_config("mean"), threads=2)


def close(found: Sequence[Hit], wanted: Sequence[Hit]) -> None:
    assert [(hit.index, hit.stage) for hit in found] == [(hit.index, hit.stage) for hit in wanted]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in wanted], abs=1e-3)


def counts(ranking: Ranking) -> list[tuple[Any, ...]]:
    return [
        (stage.ranker, stage.entered, stage.kept, stage.skipped, stage.cost)
        for stage in ranking.stages
    ]


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
@pytest.mark.parametrize("schedule", [KeepCounts((1, 3)), DropFraction((1, 3), 0.5), LEARNED])
def test_a_cascade_gives_each_what_it_gives_it_alone(
    tmp_path: Path, head: Any, schedule: Schedule
) -> None:
    engine = encoder(tmp_path / "tiny", tiny_config(head), threads=2)
    ranker = Cascade(engine, schedule)
    for (question, texts), found in zip(REQUESTS, ranker.trace_many(REQUESTS), strict=True):
        wanted = ranker.trace(question, texts)
        close(found.hits, wanted.hits)
        assert counts(found) == counts(wanted)


def rankers(engine: LayerwiseEncoder) -> dict[str, Any]:
    cascade = Cascade(engine, DropFraction(engine.depths, 0.5))
    light = WordOverlapThenOrder()
    return {
        "cut": cascade % 3,
        "pipeline": light % 4 >> cascade,
        "cascade first": cascade % 5 >> light % 3 >> OriginalOrder(),
        "nested": (light % 6 >> cascade) % 2 >> cascade,
    }


@pytest.mark.parametrize("name", ["cut", "pipeline", "cascade first", "nested"])
def test_the_algebra_gives_each_what_it_gives_it_alone(tiny: OnnxEncoder, name: str) -> None:
    ranker = rankers(tiny)[name]
    together = ranker.rank_many(REQUESTS)
    for (question, texts), hits, ranking in zip(
        REQUESTS, together, ranker.trace_many(REQUESTS), strict=True
    ):
        close(hits, ranker.rank(question, texts))
        assert counts(ranking) == counts(ranker.trace(question, texts))


def test_questions_that_go_together_share_batches(
    tiny: OnnxEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    make_batch = TokenSequences.batch

    def counted(self: TokenSequences, sequences: Any) -> Any:
        sizes.append(len(sequences))
        return make_batch(self, sequences)

    monkeypatch.setattr(TokenSequences, "batch", counted)
    same = [("who wrote it", CANDIDATES[:1]), ("it wrote who", CANDIDATES[:1])]
    Cascade(tiny, KeepCounts((1, 3))).rank_many(same)
    assert sizes == [2]


def test_an_encoder_without_shared_batches_runs_one_question_after_the_other() -> None:
    engine = WordEncoder()
    ranker = Cascade(engine, DropFraction((2, 4, 6), 0.5))
    requests = [("a b", ["a b", "x a", "x x", "b"]), ("x", ["a x", "x x x x x x"])]
    for request, found in zip(requests, ranker.rank_many(requests), strict=True):
        assert found == ranker.rank(*request)
    assert {depth for depth, _ in engine.log} == {2, 4, 6}


def test_a_question_that_waits_keeps_its_states(tiny: OnnxEncoder) -> None:
    alone = tiny.begin(QUESTION, CANDIDATES)
    wanted = alone.advance(np.arange(len(CANDIDATES)), 3)
    run = tiny.begin_many([(QUESTION, CANDIDATES), ("who", CANDIDATES)])
    here = np.arange(len(CANDIDATES))
    there = here + len(CANDIDATES)
    run.advance(here, 1, waiting=there)
    run.advance(there, 1, waiting=here)
    assert run._cache.kept.all()
    assert run.advance(here, 3) == pytest.approx(wanted, abs=1e-4)
    assert not run._cache.kept[np.isin(run._sequences.candidate, there)].any()


class _After:
    """A clock that says no so many times, then yes."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("batches", [0, 1, 5, 12])
@pytest.mark.parametrize("name", ["cut", "pipeline", "nested"])
def test_a_deadline_leaves_every_ranking_whole(tiny: OnnxEncoder, name: str, batches: int) -> None:
    asked = [Request(*request) for request in REQUESTS]
    for one, ranking in zip(
        asked, rankers(tiny)[name].run_batch(asked, _After(batches)), strict=True
    ):
        assert sorted(hit.index for hit in ranking.hits) == list(range(len(one.texts)))


def test_time_that_runs_out_runs_out_on_all_questions_alike() -> None:
    engine = WordEncoder(batch=2, seconds_a_batch=0.01)
    texts = ["a b c d"] * 40
    start = time.perf_counter()
    found = Cascade(engine, KeepCounts(engine.depths)).trace_many(
        [("a", texts)] * 3, deadline_ms=50
    )
    assert time.perf_counter() - start < 0.5
    assert sum(ranking.skipped for ranking in found) > 60


def test_the_most_promising_of_each_question_are_judged_first(tiny: OnnxEncoder) -> None:
    ranker = Cascade(tiny, KeepCounts((1, 3)))
    many = [CANDIDATES[number % 4] for number in range(160)]
    found = ranker.run_batch(_asked(many, 2), _After(12))
    judged = [len(many) - ranking.unscored for ranking in found]
    assert all(judged)
    assert abs(judged[0] - judged[1]) <= 32


def _asked(texts: list[str], times: int) -> list[Any]:
    return [Request(QUESTION, texts, list(range(len(texts)))) for _ in range(times)]


@pytest.mark.parametrize(
    ("request_", "message"),
    [((QUESTION, "it"), "got one string"), ((QUESTION, [3]), "Document 0"), ((3, []), "question")],
    ids=["a string", "a number", "no question"],
)
def test_one_wrong_request_is_refused(tiny: OnnxEncoder, request_: Any, message: str) -> None:
    for ranker in (Cascade(tiny, KeepCounts((1, 3))), OriginalOrder() % 2 >> OriginalOrder()):
        with pytest.raises(InputError, match=message):
            ranker.rank_many([(QUESTION, CANDIDATES), request_])


def test_nothing_asked_nothing_answered(tiny: OnnxEncoder) -> None:
    for ranker in (Cascade(tiny, KeepCounts((1, 3))), OriginalOrder() % 2 >> OriginalOrder()):
        assert ranker.rank_many([]) == []


def counting(log: list[int]) -> Ranker:
    def score(question: str, texts: Sequence[str]) -> list[float]:
        log.append(len(texts))
        return [-float(place) for place in range(len(texts))]

    return Ranker.from_function(score)


@pytest.mark.parametrize(
    ("texts", "clock", "expected"),
    [(4, None, []), (5, None, [5]), (4, lambda: False, [4])],
    ids=["keeps all", "drops one", "with a deadline its order counts"],
)
def test_a_cut_that_would_keep_all_is_passed_over(
    texts: int, clock: Callable[[], bool] | None, expected: list[int]
) -> None:
    log: list[int] = []
    pipeline = Cut(counting(log), 4) >> WordOverlapThenOrder()
    request = Request("a", ["x a", "a", "b", "a a", "c"][:texts])
    (ranking,) = pipeline.run_batch([request], clock)
    assert log == expected
    assert [(stage.entered, stage.kept) for stage in ranking.stages] == [(texts, 4), (4, 4)]
    assert {hit.stage for hit in ranking.hits[:4]} == {1}


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_a_stream_gives_what_rank_gives(tiny: OnnxEncoder, batch_size: int) -> None:
    ranker = Cascade(tiny, DropFraction((1, 3), 0.3))
    found = list(ranker.rank_stream(REQUESTS, top_k=3, batch_size=batch_size))
    for hits, (question, documents) in zip(found, REQUESTS, strict=True):
        close(hits, ranker.rank(question, documents, top_k=3))


def test_a_stream_reads_requests_when_they_are_needed() -> None:
    read = []

    def requests() -> Iterator[tuple[str, list[str]]]:
        for number in count():
            read.append(number)
            yield f"question {number}", [f"text {number}"]

    stream = OriginalOrder().rank_stream(requests(), batch_size=3)
    assert read == []
    assert next(stream)[0].text == "text 0"
    assert read == [0, 1, 2]
    assert [next(stream)[0].text for _ in range(3)] == ["text 1", "text 2", "text 3"]
    assert read == [0, 1, 2, 3, 4, 5]


def test_an_async_stream_leaves_the_event_loop_free() -> None:
    def slow(question: str, texts: Sequence[str]) -> list[float]:
        time.sleep(0.05)
        return [0.0] * len(texts)

    async def collect() -> tuple[list[str], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticking = asyncio.create_task(tick())
        stream = Ranker.from_function(slow).arank_stream(
            [("a", ["one"]), ("b", ["two"]), ("c", ["three"])], batch_size=1
        )
        texts = [hits[0].text async for hits in stream]
        ticking.cancel()
        return texts, ticks

    texts, ticks = asyncio.run(collect())
    assert texts == ["one", "two", "three"]
    assert ticks >= 5


@pytest.mark.parametrize("batch_size", [0, -1, True, 1.5])
def test_a_stream_refuses_a_bad_batch_size_at_once(batch_size: Any) -> None:
    with pytest.raises(InputError, match="batch_size must be a positive integer, got"):
        OriginalOrder().rank_stream([], batch_size=batch_size)


@pytest.mark.parametrize(
    ("request_", "given"),
    [
        ("ab", "got 'ab'."),
        (("who?", ["a"], 3), "got ('who?', ['a'], 3)."),
        (7, "got 7."),
        ({"question": "who?", "documents": ["a"]}, "got {'question': 'who?', 'documents': ['a']}."),
    ],
    ids=["string", "three values", "number", "mapping"],
)
def test_a_request_that_is_no_pair_is_refused(request_: Any, given: str) -> None:
    message = f"Request 1 must be a question and its documents, {given}"
    with pytest.raises(InputError, match=re.escape(message)):
        OriginalOrder().rank_many([("who?", ["a"]), request_])
