from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError, ModelError, RankerError
from askline.rankers import Cascade, OriginalOrder, WordOverlapThenOrder
from askline.rankers.base import Ranker
from askline.rankers.probability import LogitCalibration
from askline.rankers.requests import Request
from askline.rankers.schedule import (
    Cutoff,
    DropFraction,
    KeepCounts,
    Schedule,
    Step,
    TunedRow,
    TunedSchedule,
)
from askline.testing import CHECKS
from askline.types import Hit, Span

from .layerwise_encoders import WordEncoder, WordRun

QUESTION = "a b c d"
# Question words in the first 2, 4 and 6 words of each:
CANDIDATES = [
    "x x a b c d",  # 0 2 4
    "a x x x x x",  # 1 1 1
    "x x x x x x",  # 0 0 0
    "a b x x x x",  # 2 2 2
    "a x b c x x",  # 1 3 3
    "x a x x b c",  # 1 1 3
]


def cascade(schedule: Schedule | None = None, **options: Any) -> Cascade:
    encoder = options.pop("encoder", None) or WordEncoder()
    return Cascade(encoder, schedule or KeepCounts(encoder.depths), **options)


def order(hits: Sequence[Hit]) -> list[int]:
    return [hit.index for hit in hits]


def test_full_depth_is_one_look_at_the_last_classifier() -> None:
    encoder = WordEncoder()
    hits = cascade(encoder=encoder).rank(QUESTION, CANDIDATES)
    assert order(hits) == [0, 4, 5, 3, 1, 2]
    assert encoder.log == [(6, [0, 1, 2, 3, 4, 5])]


def test_dropped_candidates_follow_in_the_order_of_the_stage_that_dropped_them() -> None:
    hits = cascade(KeepCounts((2, 4, 6), (Step(2, 4), Step(4, 2)))).rank(QUESTION, CANDIDATES)
    # Depth 2 says 3, then 1 4 5, then 0 2: the last two go, though 0 would be best at depth 6.
    # Depth 4 says 4, 3, then 1 5, which go. Depth 6 leaves 4 before 3.
    assert order(hits) == [4, 3, 1, 5, 0, 2]
    assert [hit.stage for hit in hits] == [2, 2, 1, 1, 0, 0]


def test_only_survivors_go_deeper() -> None:
    encoder = WordEncoder()
    cascade(KeepCounts((2, 4, 6), (Step(2, 4), Step(4, 2))), encoder=encoder).rank(
        QUESTION, CANDIDATES
    )
    assert [(depth, sorted(rows)) for depth, rows in encoder.log] == [
        (2, [0, 1, 2, 3, 4, 5]),
        (4, [1, 3, 4, 5]),
        (6, [3, 4]),
    ]


def test_a_cutoff_drops_by_logits_and_leaves_out_steps_without_use() -> None:
    encoder, cutoff = WordEncoder(), Cutoff(margin=1.0, logit=-0.5, keep=2)
    schedule = TunedSchedule(
        (2, 4, 6), (TunedRow(10, ()),), cutoffs=((2, cutoff), (4, replace(cutoff, keep=4)))
    )
    ranking = cascade(schedule, encoder=encoder).trace(QUESTION, CANDIDATES)
    # Depth 2 gives 3 the logit 0.5, 1 4 5 -0.5, and 0 2 less. The four that are left are no
    # more than the second cutoff keeps, so it is not run.
    assert [(depth, sorted(rows)) for depth, rows in encoder.log] == [
        (2, [0, 1, 2, 3, 4, 5]),
        (6, [1, 3, 4, 5]),
    ]
    assert order(ranking.hits) == [4, 5, 3, 1, 0, 2]
    assert [(stage.entered, stage.kept) for stage in ranking.stages] == [(6, 4), (4, 4)]


def test_scores_are_chances_by_the_calibration_of_the_depth_that_decided() -> None:
    calibration = {2: LogitCalibration(2.0, 1.0)}
    hits = cascade(KeepCounts((2, 6), (Step(2, 1),)), calibration=calibration).rank(
        QUESTION, CANDIDATES[2:4]
    )
    assert [(hit.index, hit.stage) for hit in hits] == [(1, 1), (0, 0)]
    assert hits[0].score == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert hits[1].score == pytest.approx(1 / (1 + np.exp(2.0)))


def test_trace_reports_each_classifier_with_its_cost() -> None:
    ranking = cascade(KeepCounts((2, 4, 6), (Step(2, 3),))).trace(QUESTION, CANDIDATES)
    assert [(stage.ranker, stage.entered, stage.kept) for stage in ranking.stages] == [
        ("cascade(depth=2)", 6, 3),
        ("cascade(depth=6)", 3, 3),
    ]
    assert ranking.cost is not None
    assert ranking.cost.candidate_share == pytest.approx((6 * 2 + 3 * 4) / 36)
    assert ranking.cost.token_share == pytest.approx(ranking.cost.candidate_share)
    assert (ranking.skipped, ranking.unscored) == (0, 0)


def test_token_layers_count_long_candidates_for_more() -> None:
    long = "a b " + "x " * 30
    ranking = cascade(KeepCounts((2, 6), (Step(2, 1),))).trace(QUESTION, ["x", long])
    assert ranking.cost is not None
    assert ranking.cost.token_share > ranking.cost.candidate_share


def test_cost_in_a_pipeline_is_relative_to_all_its_candidates() -> None:
    ranking = (WordOverlapThenOrder() % 3 >> cascade()).trace(QUESTION, CANDIDATES)
    assert ranking.cost is not None
    assert ranking.cost.candidate_share == pytest.approx(0.5)


def test_encoders_of_their_own_depth_in_sequence_are_a_pipeline() -> None:
    """SR: the sequence costs its full depths, one after the other, relative to the deepest."""
    two, four, six = (cascade(encoder=WordEncoder((depth,))) for depth in (2, 4, 6))
    ranking = (two % 4 >> four % 2 >> six).trace(QUESTION, CANDIDATES)
    one = cascade(KeepCounts((2, 4, 6), (Step(2, 4), Step(4, 2)))).trace(QUESTION, CANDIDATES)
    assert [(hit.index, hit.stage) for hit in ranking.hits] == [
        (hit.index, hit.stage) for hit in one.hits
    ]
    assert ranking.cost is not None
    assert ranking.cost.candidate_layers == 6 * 2 + 4 * 4 + 2 * 6
    assert ranking.cost.full_candidate_layers == 36


def test_a_classifier_that_gives_nan_is_named() -> None:
    class Broken(WordRun):
        def advance(self, rows: Any, depth: int, *, stop: Any = None, waiting: Any = None) -> Any:
            return np.full(len(rows), np.nan, np.float32)

    class BrokenEncoder(WordEncoder):
        def begin(self, question: str, candidates: Sequence[str]) -> WordRun:
            return Broken(self, set(), [[] for _ in candidates])

    with pytest.raises(RankerError, match=r"cascade\(depth=6\) gave document 0 the score NaN"):
        cascade(encoder=BrokenEncoder()).rank("?", ["a"])


def test_read_points_inside_each_candidate_at_full_depth() -> None:
    assert cascade().read(QUESTION, ["abc d", ""]) == [Span(0, 3, 1.0, 0.0), None]
    assert cascade().read(QUESTION, []) == []


def test_threshold_is_found_through_cuts_and_pipelines() -> None:
    judge = cascade(threshold=0.3)
    assert (OriginalOrder() % 3 >> judge % 2).threshold == 0.3
    assert (judge >> OriginalOrder()).threshold is None


def test_without_a_folder_and_without_a_shipped_one_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("askline.models.folder.files", lambda _: tmp_path)
    with pytest.raises(ModelError, match="Name the folder of a model; `askline train cascade`"):
        Cascade.load()


CONTRACTS = {
    "full depth": cascade(),
    "alpha": cascade(DropFraction((2, 4, 6), 0.3)),
    "keeps": cascade(KeepCounts((2, 4, 6), (Step(2, 3), Step(4, 1)))),
    "behind a cut": WordOverlapThenOrder() % 4 >> cascade(DropFraction((2, 4, 6), 0.5)),
    "in sequence": cascade(encoder=WordEncoder((2,))) % 3 >> cascade(encoder=WordEncoder((6,))),
}


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("ranker", CONTRACTS.values(), ids=CONTRACTS)
def test_cascade_keeps_the_contract(ranker: Ranker, check: Callable[[Ranker], None]) -> None:
    check(ranker)


texts = st.lists(st.text("abcx ", max_size=20), max_size=12)


@pytest.mark.slow
@given(texts, st.floats(0, 0.9))
def test_a_cascade_is_a_pipeline_of_its_depths(candidates: list[str], alpha: float) -> None:
    whole = cascade(DropFraction((2, 4, 6), alpha)).trace(QUESTION, candidates)
    assert sorted(order(whole.hits)) == list(range(len(candidates)))
    assert [hit.stage for hit in whole.hits] == sorted(
        (hit.stage for hit in whole.hits), reverse=True
    )
    if candidates:
        assert whole.cost is not None
        assert 0 < whole.cost.candidate_share <= 1


# Deadlines


class _Ticks:
    """Time that is up after so many questions: an exact clock for tests."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def until(ranker: Any, batches: int, candidates: Sequence[str] = CANDIDATES) -> Any:
    (ranking,) = ranker.run_batch([Request(QUESTION, candidates)], _Ticks(batches))
    return ranking


KEEPS = KeepCounts((2, 4, 6), (Step(2, 4), Step(4, 2)))


def test_time_up_before_the_first_batch_gives_the_original_order() -> None:
    ranking = until(cascade(KEEPS), 0)
    assert ranking.hits == tuple(Hit(row, 0.0, 0) for row in range(6))
    assert ranking.unscored == 6
    assert [stage.skipped for stage in ranking.stages] == [6, 4, 2]


def test_time_up_in_the_first_classifier_puts_the_judged_first() -> None:
    ranking = until(cascade(KEEPS), 1)  # one batch of four
    assert order(ranking.hits) == [3, 1, 0, 2, 4, 5]
    assert ranking.unscored == 2
    assert [stage.skipped for stage in ranking.stages] == [2, 4, 2]
    assert ranking.cost.candidate_layers == 4 * 2


def test_time_up_between_two_classifiers_gives_the_order_of_the_first() -> None:
    ranking = until(cascade(KEEPS), 2)
    assert order(ranking.hits) == [3, 1, 4, 5, 0, 2]
    assert [hit.stage for hit in ranking.hits] == [0] * 6
    assert [stage.skipped for stage in ranking.stages] == [0, 4, 2]
    assert ranking.unscored == 0


def test_time_up_inside_a_later_classifier_compares_chances_of_two_depths() -> None:
    encoder = WordEncoder(batch=2)
    ranking = until(cascade(KEEPS, encoder=encoder), 4)  # three batches at depth 2, one at 4
    # Best first at depth 4: 3 and 1 were judged there, 4 and 5 were not; 3 is still at 2 words.
    assert encoder.log[1] == (4, [3, 1, 4, 5])
    assert order(ranking.hits) == [3, 1, 4, 5, 0, 2]
    assert [hit.stage for hit in ranking.hits] == [1, 1, 1, 1, 0, 0]
    assert [stage.skipped for stage in ranking.stages] == [0, 2, 2]


def test_enough_time_changes_nothing() -> None:
    ranker = WordOverlapThenOrder() % 5 >> cascade(KEEPS)
    assert ranker.rank(QUESTION, CANDIDATES, deadline_ms=60_000) == ranker.rank(
        QUESTION, CANDIDATES
    )


def test_in_a_pipeline_the_most_promising_are_judged_first() -> None:
    encoder = WordEncoder(batch=2)
    ranker = WordOverlapThenOrder() % 5 >> cascade(encoder=encoder)
    ranking = until(ranker, 2)  # asked once before the stage, then one batch
    # Overlap says 0, 4 5, 3, 1 | 2. The cascade judges 0 and 4; the rest stay as overlap has them.
    assert encoder.log[0][1][:2] == [0, 3]  # counted among the five that it was given
    assert order(ranking.hits) == [0, 4, 5, 3, 1, 2]
    assert [hit.stage for hit in ranking.hits] == [1, 1, 0, 0, 0, 0]
    assert [stage.skipped for stage in ranking.stages] == [0, 3]
    assert ranking.unscored == 0


def test_a_stage_that_time_does_not_reach_is_skipped() -> None:
    ranker = WordOverlapThenOrder() % 3 >> cascade() % 2 >> OriginalOrder()
    ranking = until(ranker, 0)
    assert ranking.hits == tuple(WordOverlapThenOrder().rank(QUESTION, CANDIDATES))
    assert [(stage.ranker, stage.skipped) for stage in ranking.stages] == [
        ("wo+rr % 3", 0),
        ("cascade % 2", 3),
        ("rr", 3),
    ]


def test_a_ranker_without_deadlines_just_runs() -> None:
    assert OriginalOrder().trace("?", CANDIDATES, deadline_ms=0.001).skipped == 0


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "soon", True])
def test_a_deadline_is_a_number_above_nothing(wrong: Any) -> None:
    with pytest.raises(InputError, match="deadline_ms must be a positive number"):
        cascade().rank("?", [], deadline_ms=wrong)


@pytest.mark.parametrize("milliseconds", [1, 10, 200])
def test_a_deadline_is_kept_within_one_batch(milliseconds: float) -> None:
    batch = 0.02
    ranker = cascade(encoder=WordEncoder(batch=4, seconds_a_batch=batch))
    ranker.rank("warm", ["up"])
    start = time.perf_counter()
    ranking = ranker.trace(QUESTION, CANDIDATES * 20, deadline_ms=milliseconds)
    seconds = time.perf_counter() - start
    assert ranking.skipped > 0
    # One batch may be under way when time is up; the rest is slack for a busy machine.
    assert seconds < milliseconds / 1000 + batch + 0.05


@given(st.integers(0, 12), st.integers(1, 5), st.integers(1, 6))
def test_whenever_time_runs_out_the_ranking_is_whole_and_in_order(
    batches: int, batch: int, keep: int
) -> None:
    judge = cascade(DropFraction((2, 4, 6), 0.3), encoder=WordEncoder(batch=batch))
    for ranker in (judge, WordOverlapThenOrder() % keep >> judge):
        ranking = until(ranker, batches)
        assert sorted(order(ranking.hits)) == list(range(6))
        keys = [(-hit.stage, -hit.score) for hit in ranking.hits]
        assert keys == sorted(keys)
