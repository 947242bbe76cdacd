from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.errors import InputError, ModelError
from askline.rankers.probability import read_calibration, read_threshold
from askline.rankers.schedule import TunedSchedule
from askline.tuning import TuningResult, tune
from askline.tuning.schedule_fitting import fingerprint, save_schedule, write_report

from .random_tables import DEPTHS, table


@pytest.fixture(scope="module")
def tuned() -> TuningResult:
    tables = [
        table(60, 24, seed=1, first_stage=True, name="a"),
        table(30, 24, seed=2, first_stage=True, name="b"),
    ]
    return tune(tables, budget=0.6, counts=(6, 12, 24), first=True)


def test_a_row_for_each_length_and_for_the_cut_of_the_first_stage(tuned: TuningResult) -> None:
    counts = [row.count for row in tuned.rows]
    assert counts == sorted(counts)
    assert tuned.first in counts
    assert [whole.count for whole in tuned.pipelines] == [24]


def test_shorter_lists_keep_at_least_the_same_share(tuned: TuningResult) -> None:
    for shorter, longer in pairwise(tuned.schedule.rows):
        for depth in DEPTHS[:-1]:
            # Up to rounding to whole candidates.
            share = longer.at(depth) / longer.count
            assert shorter.at(depth) >= int(share * shorter.count)


def test_the_budget_holds_for_the_longest_lists(tuned: TuningResult) -> None:
    assert tuned.rows[-1].choice.trial.mean_cost <= 0.6


def test_shorter_lists_may_cost_more_rather_than_lose(tuned: TuningResult) -> None:
    strict = tune([table(60, 12, seed=1)], budget=0.4, loss=0.01, counts=(6, 12))
    short = strict.rows[0].choice
    assert short.trial.mean_cost > 0.4 or short.full.p1 - short.trial.p1 <= 0.01


def test_expensive_classifiers_are_used_less() -> None:
    cheap, dear = (
        tune([table(60, 12, seed=1)], budget=0.6, counts=(6, 12), stage=stage)
        for stage in (0.0, 12.0)
    )
    few, many = dear.schedule.rows[0], cheap.schedule.rows[0]
    assert len(few.keeps) <= len(many.keeps)
    assert dear.schedule.plan(few.count)[:-1] == few.keeps
    assert dear.schedule.rows[-1] == cheap.schedule.rows[-1]  # long lists do not change
    assert dear.to_config()["schedule"]["stage"] == 12.0


def test_short_lists_come_from_the_table_that_is_just_long_enough() -> None:
    long, short = table(20, 24, first_stage=True), table(40, 12, first_stage=True)
    both = tune([long, short], budget=0.7, counts=(12, 24), first=True)
    assert [whole.count for whole in both.pipelines] == [12, 24]
    assert [(row.count, row.questions) for row in both.rows if row.count in (12, 24)][-1] == (
        24,
        20,
    )
    assert {row.questions for row in both.rows if row.count == 12} <= {40}
    assert both.sets == ("drawn",)


def test_a_budget_must_be_a_share() -> None:
    with pytest.raises(InputError, match="budget must be above 0 and at most 1, got 2"):
        tune([table()], budget=2)


def test_a_saved_schedule_is_read_back(tuned: TuningResult, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"kind": "cascade", "threshold": 0.1}')
    (tmp_path / "weights.safetensors").write_bytes(b"w")
    before = fingerprint(tmp_path)
    save_schedule(tuned, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["kind"] == "cascade"
    assert TunedSchedule.from_config(DEPTHS, config["schedule"]) == tuned.schedule
    assert config["schedule"]["tuned_on"] == ["a", "b"]
    assert read_calibration(config) == tuned.calibration
    assert read_threshold(config) == tuned.threshold
    assert fingerprint(tmp_path) == before
    (tmp_path / "weights.safetensors").write_bytes(b"v")
    assert fingerprint(tmp_path) != before


def test_a_folder_without_a_config_is_refused(tuned: TuningResult, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="must be a JSON object"):
        save_schedule(tuned, tmp_path)


def test_the_report_is_json(tuned: TuningResult, tmp_path: Path) -> None:
    report = json.loads(write_report(tuned, tmp_path / "new").read_text("utf-8"))
    assert [row["count"] for row in report["rows"]] == [row.count for row in tuned.rows]
    assert set(report["rows"][0]["alpha"]) == {"0.3", "0.4", "0.5"}
    costs = [point["cost"] for point in report["pipelines"][0]["front"]]
    assert costs == sorted(costs)


def test_a_first_stage_is_tuned_on_whole_lists_of_any_length() -> None:
    found = tune([table(size=17, first_stage=True)], budget=0.7, counts=(6, 12), first=True)
    assert 1 < found.first < 17
    assert [whole.count for whole in found.pipelines] == [17]


def test_a_first_stage_needs_lists_of_one_length() -> None:
    short, long = table(10, 6, first_stage=True), table(10, 9, first_stage=True)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(short, name), getattr(long, name)], axis=-1)
        for name in ("sizes", "labels", "added", "tokens", "scores", "first_stage")
    }
    names = (*short.questions, *(f"long {own}" for own in long.questions))
    mixed = replace(short, questions=names, **columns)
    with pytest.raises(InputError, match=r"lists of one length.* which has 9 candidates"):
        tune([mixed], budget=0.7, counts=(6,), first=True)
    assert tune([mixed], budget=0.7, counts=(6,)).first == 0


@pytest.mark.parametrize("budget", [0.3, 0.5, 0.7])
def test_longer_lists_keep_at_least_as_many(budget: float) -> None:
    many, few = table(60, 12, seed=1), table(20, 36, seed=2)
    found = tune([many, few], budget=budget, counts=(12, 36))
    shorter, longer = found.schedule.rows
    assert (shorter.count, longer.count) == (12, 36)
    for depth in DEPTHS[:-1]:
        assert longer.at(depth) >= shorter.at(depth)
