from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError, ModelError
from askline.rankers.schedule import (
    Cutoff,
    DropFraction,
    KeepCounts,
    Schedule,
    Step,
    TunedRow,
    TunedSchedule,
    parse_keeps,
)

DEPTHS = (4, 6, 8, 10, 12)
CUTOFF = {"margin": 3.0, "logit": -2.0, "keep": 5}


def keeps(schedule: Schedule, count: int) -> list[int]:
    return [step.keep for step in schedule.plan(count)]


@pytest.mark.parametrize(
    ("alpha", "left"),
    [(0.3, [90, 63, 45, 32, 32]), (0.5, [64, 32, 16, 8, 8]), (0.0, [128])],
)
def test_drop_follows_the_rule_of_the_paper(alpha: float, left: list[int]) -> None:
    assert keeps(DropFraction(DEPTHS, alpha), 128) == left


def test_drop_counts_as_a_person_does() -> None:
    assert keeps(DropFraction((4, 6), 0.29), 100)[0] == 71  # 0.29 * 100 is 28.999… to a computer


@pytest.mark.parametrize("alpha", [-0.1, 1, 1.5, True, "much", float("nan")])
def test_drop_refuses_what_is_no_share(alpha: Any) -> None:
    with pytest.raises(InputError, match="alpha must be at least 0 and below 1"):
        DropFraction(DEPTHS, alpha)


def test_relative_cost_is_that_of_the_paper() -> None:
    """−37 %, −45 % and −51 % with classifiers at 4, 6, 8, 10, 12."""
    for alpha, published in ((0.3, 0.37), (0.4, 0.45), (0.5, 0.51)):
        steps = DropFraction(DEPTHS, alpha).plan(128)
        entered = [128, *(step.keep for step in steps[:-1])]
        layers = [steps[0].depth, *(b.depth - a.depth for a, b in zip(steps, steps[1:]))]  # noqa: B905, RUF007
        saved = 1 - sum(n * d for n, d in zip(entered, layers, strict=True)) / (12 * 128)
        assert saved == pytest.approx(published, abs=0.015)


def test_a_classifier_that_drops_nothing_is_not_run() -> None:
    schedule = KeepCounts(DEPTHS, (Step(4, 50), Step(8, 10)))
    assert schedule.plan(200) == (Step(4, 50), Step(8, 10), Step(12, 10))
    assert schedule.plan(30) == (Step(8, 10), Step(12, 10))
    assert schedule.plan(10) == (Step(12, 10),)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("90,40", (Step(4, 90), Step(6, 40))),
        (" 90 , 40 ", (Step(4, 90), Step(6, 40))),
        ("4:90,10:5", (Step(4, 90), Step(10, 5))),
    ],
)
def test_keeps_are_read(text: str, steps: tuple[Step, ...]) -> None:
    assert parse_keeps(text, DEPTHS) == steps


@pytest.mark.parametrize("text", ["", "many", "9,8,7,6,5", "4:9,8", "-3", "4:"])
def test_keeps_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="keeps must be at most 4 numbers"):
        parse_keeps(text, DEPTHS)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((Step(5, 9),), "at the depths 4, 6, 8, 10, got 5"),
        ((Step(12, 9),), "Depth 12 is the last and keeps all"),
        ((Step(4, 0),), "keep must be at least 1, got 0"),
        ((Step(6, 9), Step(4, 5)), "must have rising depths and must not rise, got 4:5 after 6:9"),
        ((Step(4, 5), Step(6, 9)), "must have rising depths and must not rise, got 6:9 after 4:5"),
    ],
)
def test_keeps_that_make_no_sense_are_refused(steps: tuple[Step, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        KeepCounts(DEPTHS, steps)


LEARNED = TunedSchedule(
    DEPTHS,
    (TunedRow(25, (Step(4, 10),)), TunedRow(400, (Step(4, 40), Step(6, 10)))),
)


@pytest.mark.parametrize(
    ("count", "plan"),
    [
        (25, (Step(4, 10), Step(12, 10))),
        (400, (Step(4, 40), Step(6, 10), Step(12, 10))),
        (100, (Step(4, 20), Step(6, 10), Step(12, 10))),  # half way in log count
        (1_600, (Step(4, 80), Step(6, 10), Step(12, 10))),  # the line goes on
        (1, (Step(12, 1),)),
    ],
)
def test_learned_keeps_lie_on_a_line_between_the_rows(count: int, plan: tuple[Step, ...]) -> None:
    assert LEARNED.plan(count) == plan


def test_learned_gives_every_row_as_it_was_found() -> None:
    rows = (TunedRow(50, (Step(4, 27), Step(10, 1))), TunedRow(89, (Step(4, 49), Step(10, 3))))
    for row in rows:
        assert TunedSchedule(DEPTHS, rows).plan(row.count)[:-1] == row.keeps


@pytest.mark.parametrize(
    ("stage", "plan"),
    [
        (0.0, (Step(4, 8), Step(6, 7), Step(8, 4), Step(12, 4))),
        (2.0, (Step(4, 8), Step(6, 7), Step(8, 4), Step(12, 4))),  # one less for two layers
        (3.0, (Step(4, 8), Step(8, 4), Step(12, 4))),
        (9.0, (Step(8, 4), Step(12, 4))),  # two less for four layers are eight
        (99.0, (Step(12, 10),)),
    ],
)
def test_steps_that_do_not_pay_for_themselves_are_left_out(
    stage: float, plan: tuple[Step, ...]
) -> None:
    row = TunedRow(10, (Step(4, 8), Step(6, 7), Step(8, 4)))
    assert TunedSchedule(DEPTHS, (row,), stage).plan(10) == plan


def test_learned_comes_back_from_its_config() -> None:
    assert TunedSchedule.from_config(DEPTHS, LEARNED.to_config()) == LEARNED
    priced = replace(LEARNED, stage=3.5)
    assert TunedSchedule.from_config(DEPTHS, priced.to_config()) == priced
    assert TunedSchedule.from_config(DEPTHS, {"rows": LEARNED.to_config()["rows"]}) == LEARNED


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"rows": []},
        {"rows": [{"count": 5}]},
        {"rows": [{"count": 5, "keeps": {"7": 2}}]},
        {"rows": [{"count": 9, "keeps": {}}, {"count": 5, "keeps": {}}]},
        {"rows": 3},
        {"rows": [{"count": 5, "keeps": {}}], "stage": -1},
        {"rows": [{"count": 5, "keeps": {}}], "stage": "much"},
        {"rows": [{"count": 5, "keeps": {}}], "cutoffs": {"4": {"margin": 3}}},
        {"rows": [{"count": 5, "keeps": {}}], "cutoffs": {"7": CUTOFF}},
        {"rows": [{"count": 5, "keeps": {}}], "cutoffs": {"12": CUTOFF}},
        {"rows": [{"count": 5, "keeps": {}}], "cutoffs": {"4": CUTOFF | {"keep": 0}}},
    ],
)
def test_a_broken_schedule_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="A schedule must have the form"):
        TunedSchedule.from_config(DEPTHS, config)


def test_a_cutoff_drops_by_logits_and_keeps_a_few() -> None:
    cutoff = Cutoff(margin=3.0, logit=-2.0, keep=2)
    assert cutoff.kept([5.0, 4.0, 2.0, 1.9]) == 3  # more than 3 below the best
    assert cutoff.kept([0.0, -1.0, -2.0, -2.1]) == 3  # below -2
    assert cutoff.kept([9.0, -5.0, -6.0]) == 2
    assert cutoff.kept([9.0]) == 2  # a caller has fewer than that


def test_cutoffs_are_planned_where_they_can_drop_something() -> None:
    config = {
        "rows": [{"count": 40, "keeps": {}}, {"count": 100, "keeps": {"6": 20}}],
        "cutoffs": {"4": CUTOFF, "6": CUTOFF | {"keep": 30}, "8": CUTOFF},
    }
    schedule = TunedSchedule.from_config(DEPTHS, config)
    four, six = Cutoff(3.0, -2.0, 5), Cutoff(3.0, -2.0, 30)
    assert schedule.plan(5) == (Step(12, 5),)
    assert schedule.plan(10) == (Step(4, 10, four), Step(8, 10, four), Step(12, 10))
    assert schedule.plan(40)[1] == Step(6, 40, six)
    assert schedule.plan(100) == (
        Step(4, 100, four),
        Step(6, 20),
        Step(8, 20, four),
        Step(12, 20),
    )
    assert TunedSchedule.from_config(DEPTHS, schedule.to_config()) == schedule


schedules = st.one_of(
    st.builds(DropFraction, st.just(DEPTHS), st.floats(0, 0.99)),
    st.lists(st.integers(1, 300), max_size=4).map(
        lambda found: KeepCounts(DEPTHS, tuple(map(Step, DEPTHS, sorted(found, reverse=True))))
    ),
    st.just(LEARNED),
    st.builds(TunedSchedule, st.just(DEPTHS), st.just(LEARNED.rows), st.floats(0, 50)),
)


@given(schedules, st.integers(1, 2_000))
def test_plans_go_deeper_and_keep_less(schedule: Schedule, count: int) -> None:
    steps = schedule.plan(count)
    assert steps[-1].depth == 12
    left, depth = count, 0
    for step in steps[:-1]:
        assert step.depth > depth
        assert 1 <= step.keep < left
        left, depth = step.keep, step.depth
    assert steps[-1].keep == left


@given(st.integers(1, 1_999))
def test_learned_keeps_never_fall_as_lists_grow(count: int) -> None:
    for depth in DEPTHS[:-1]:
        at = [LEARNED._keep(depth, n) for n in (count, count + 1)]
        assert at[0] <= at[1]
