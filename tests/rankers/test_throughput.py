from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.engine.layerwise import LayerwiseRun
from askline.rankers.cascade import Cascade, _admit, _affordable
from askline.rankers.deadline import Deadline, Throughput
from askline.rankers.lexical import OriginalOrder
from askline.rankers.requests import Request
from askline.rankers.schedule import (
    DropFraction,
    KeepCounts,
    Step,
    TunedRow,
    TunedSchedule,
    candidate_layers,
)
from askline.types import Cost, Hit, Ranking, StageReport

from .layerwise_encoders import WordEncoder, WordRun

QUESTION = "a b"  # 3 characters
TEXTS = ["a b", "x a b", "x x b", "b x", "a x x b", "x x x x"]
FULL = KeepCounts((2, 4, 6))


class Clock:
    """Stands still unless work moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def deadline(self, seconds: float) -> Deadline:
        return Deadline(self.now + seconds, self)


@dataclass
class TimedRun(LayerwiseRun):
    """Takes one second per character and layer, the throughput that these tests assume."""

    run: WordRun
    clock: Clock
    sizes: Any

    @property
    def tokens(self) -> Any:
        return self.run.tokens

    def advance(self, rows: Any, depth: int, *, stop: Any = None, waiting: Any = None) -> Any:
        before = self.run.depth
        logits = self.run.advance(rows, depth, stop=stop)
        self.clock.now += (depth - before) * self.sizes[rows[~np.isnan(logits)]].sum()
        return logits

    def read(self, rows: Any) -> Any:
        return self.run.read(rows)


class TimedEncoder(WordEncoder):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.begun: list[list[str]] = []

    def begin(self, question: str, candidates: Any) -> Any:
        self.begun.append(list(candidates))
        sizes = np.array([len(question) + len(text) for text in candidates])
        return TimedRun(super().begin(question, candidates), self.clock, sizes)


def timed(
    seconds_per_unit: float | None = 1.0, schedule: Any = FULL
) -> tuple[Cascade, TimedEncoder]:
    encoder = TimedEncoder(Clock())
    return Cascade(encoder, schedule, throughput=Throughput(seconds_per_unit)), encoder


def test_throughput_averages_its_measurements() -> None:
    throughput = Throughput()
    assert throughput.capacity(0.001) == math.inf
    throughput.update(100, 2.0)
    assert throughput.seconds_per_unit == 0.02
    assert throughput.capacity(1.0) == pytest.approx(45)  # a tenth is kept in reserve
    throughput.update(100, 4.0)
    assert throughput.seconds_per_unit == 0.03
    throughput.update(0, 1.0)
    assert throughput.seconds_per_unit == 0.03, "no work, so no measurement"
    assert throughput.capacity(-1.0) == 0


def test_throughput_decays_after_a_call_in_which_nothing_fitted() -> None:
    throughput = Throughput(1.0)
    throughput.decay()
    assert throughput.seconds_per_unit == pytest.approx(0.8)
    unknown = Throughput()
    unknown.decay()
    assert unknown.seconds_per_unit is None


@pytest.mark.parametrize(
    ("work", "expected"),
    [(0, 0), (59, 0), (60, 1), (119, 1), (120, 2), (199, 3), (10_000, 4)],
)
def test_as_many_begin_as_can_finish(work: float, expected: int) -> None:
    # 6 layers of 10, 10, 12 and 20 characters
    assert _affordable(FULL, [10, 10, 12, 20], work) == expected


def test_what_a_schedule_drops_lets_more_begin() -> None:
    sizes = [10] * 40
    drop = DropFraction((2, 4, 6), 0.5)
    work = 10 * candidate_layers(drop.plan(16), 16)
    assert _affordable(drop, sizes, work) == 16
    assert _affordable(FULL, sizes, work) == 9  # 2 layers of 16, 8 and 4, or 6 of 9


@given(st.lists(st.integers(1, 90), max_size=60), st.floats(0, 1e5))
def test_one_more_would_not_come_to_the_end(sizes: list[int], work: float) -> None:
    found = _affordable(FULL, sizes, work)
    assert 0 <= found <= len(sizes)
    assert 6 * sum(sizes[:found]) <= work + 1e-6
    if found < len(sizes):
        assert 6 * sum(sizes[: found + 1]) > work - 1e-6


def test_candidate_layers_are_those_of_the_plan() -> None:
    rows = (TunedRow(8, (Step(2, 4), Step(4, 1))),)
    plan = TunedSchedule((2, 4, 6), rows).plan(8)
    assert candidate_layers(plan, 8) == 8 * 2 + 4 * 2 + 1 * 2


def test_a_deadline_lets_the_most_promising_begin_and_no_more() -> None:
    ranker, encoder = timed()
    # 4 has 10 characters with the question, 1 has 8: 108 at full depth, of 120 without a tenth.
    ranking = ranker.run_batch(
        [Request(QUESTION, TEXTS, [4, 1, 0, 2, 3, 5])], Clock().deadline(121)
    )
    assert encoder.begun == [[TEXTS[1], TEXTS[4]]], "in the original order"
    assert [hit.index for hit in ranking[0].hits] == [1, 4, 0, 2, 3, 5]
    assert [hit.score for hit in ranking[0].hits[2:]] == [0] * 4
    assert ranking[0].unscored == 4
    assert [(stage.entered, stage.skipped) for stage in ranking[0].stages] == [(6, 4)]
    assert ranking[0].cost is not None
    assert ranking[0].cost.candidate_share == pytest.approx(2 / 6)


def test_those_that_begin_are_done_in_time() -> None:
    ranker, encoder = timed(schedule=DropFraction((2, 4, 6), 0.3))
    for seconds in (1, 60, 200, 400, 1_000):
        deadline = encoder.clock.deadline(seconds)
        ranker.throughput.seconds_per_unit = 1.0  # the real clock stands beside this one
        (ranking,) = ranker.run_batch([Request(QUESTION, TEXTS)], deadline)
        assert deadline.left >= 0
        assert sorted(hit.index for hit in ranking.hits) == list(range(6))


def test_without_time_for_any_candidate_the_order_stays() -> None:
    ranker, encoder = timed()
    (ranking,) = ranker.run_batch(
        [Request(QUESTION, TEXTS, [5, 4, 3, 2, 1, 0])], Clock().deadline(1)
    )
    assert encoder.begun == []
    assert [hit.index for hit in ranking.hits] == [5, 4, 3, 2, 1, 0]
    assert [(stage.ranker, stage.skipped) for stage in ranking.stages] == [("cascade", 6)]
    assert (ranking.unscored, ranking.cost) == (6, None)
    assert ranker.throughput.seconds_per_unit == pytest.approx(0.8)


def test_in_a_pipeline_the_rest_stays_as_the_stage_before_has_it() -> None:
    ranker, _ = timed()
    pipeline = OriginalOrder() % 4 >> ranker
    (ranking,) = pipeline.run_batch([Request(QUESTION, TEXTS)], Clock().deadline(80))
    assert [hit.index for hit in ranking.hits] == [0, 1, 2, 3, 4, 5]
    assert [hit.stage for hit in ranking.hits] == [1, 0, 0, 0, 0, 0]
    assert ranking.unscored == 0


def test_questions_share_the_time() -> None:
    ranker, encoder = timed()
    found = ranker.run_batch([Request(QUESTION, TEXTS)] * 2, Clock().deadline(220))
    assert encoder.begun == [TEXTS[:2]] * 2
    assert [ranking.unscored for ranking in found] == [4, 4]


def test_before_the_first_measurement_all_begin() -> None:
    ranker, encoder = timed(seconds_per_unit=None)
    ranker.run_batch([Request(QUESTION, TEXTS)], Clock().deadline(1))
    assert encoder.begun == [TEXTS]


def test_without_a_deadline_throughput_changes_nothing() -> None:
    slow, fast = (timed(seconds)[0].rank(QUESTION, TEXTS) for seconds in (1e9, 1e-9))
    assert slow == fast


def test_every_ranking_measures_throughput() -> None:
    ranker, _ = timed(seconds_per_unit=None)
    ranker.rank(QUESTION, [])
    assert ranker.throughput.seconds_per_unit is None
    ranker.rank(QUESTION, TEXTS)
    assert ranker.throughput.seconds_per_unit is not None


class LazyEncoder(WordEncoder):
    """Builds its one part when it is first used."""

    parts_ready = 0

    def begin(self, question: str, candidates: Any) -> WordRun:
        self.parts_ready = 1
        return super().begin(question, candidates)


def test_a_ranking_that_built_graphs_is_not_measured() -> None:
    ranker = Cascade(LazyEncoder(), FULL)
    ranker.rank(QUESTION, TEXTS)
    assert ranker.throughput.seconds_per_unit is None
    ranker.rank(QUESTION, TEXTS)
    assert ranker.throughput.seconds_per_unit is not None


def test_the_clock_starts_after_warm_up() -> None:
    encoder = LazyEncoder()
    pipeline = OriginalOrder() % 4 >> Cascade(encoder, FULL) % 2
    assert pipeline._start_clock(None) is None
    assert encoder.log == []
    deadline = pipeline._start_clock(60_000)
    assert deadline is not None
    assert deadline.left > 59
    assert [depth for depth, _ in encoder.log] == [2, 4, 6] * 2, "built, then timed"
    pipeline.trace(QUESTION, TEXTS, deadline_ms=60_000)
    assert len(encoder.log) == 7, "once is enough"


def test_whole_rankings_count_what_was_left_out() -> None:
    asked = Request("q", ["aaa", "b", "cc"], [2, 0, 1])
    begun = _admit(asked, KeepCounts((1,)), 3)
    assert tuple(begun) == (Request("q", ["cc"], [0]), [2], [0, 1])
    part = Ranking((Hit(0, 0.7, 0),), (StageReport("it", 1, 1, 0.1, 0, Cost(1, 5, 1, 5)),))
    whole = begun.complete(part)
    assert [(hit.index, hit.score) for hit in whole.hits] == [(2, 0.7), (0, 0.0), (1, 0.0)]
    assert whole.stages[0].cost == Cost(1, 5, 3, 15)
    assert _admit(asked, KeepCounts((1,)), math.inf).complete(part) is part
