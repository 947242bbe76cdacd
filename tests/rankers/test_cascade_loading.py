"""A cascade out of its folder, by its options, on the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import askline
from askline.errors import InputError, ModelError, SpecError
from askline.rankers import Cascade
from askline.rankers.base import Ranker
from askline.rankers.probability import LogitCalibration
from askline.rankers.schedule import (
    DropFraction,
    KeepCounts,
    Schedule,
    Step,
    TunedRow,
    TunedSchedule,
)
from askline.testing import CHECKS

from .cascade_folders import DEPTHS, cascade_folder

SCHEDULE = {"rows": [{"count": 10, "keeps": {"2": 4}}], "budget": 0.4, "tuned_on": ["wikiqa:dev"]}
TUNED = TunedSchedule(DEPTHS, (TunedRow(10, (Step(2, 4),)),))
CANDIDATES = ["The rock.", "A lighthouse lit in the rocks.", "In a rock", "lit", "The the the"] * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cascade_folder(
        tmp_path_factory.mktemp("cascade"),
        schedule=SCHEDULE,
        calibration={"2": {"scale": 0.5, "shift": -1.0}},
        threshold=0.2,
    )


@pytest.mark.parametrize(
    ("options", "schedule"),
    [
        ({}, TUNED),
        ({"alpha": 0.3}, DropFraction(DEPTHS, 0.3)),
        ({"alpha": 0}, DropFraction(DEPTHS, 0)),
        ({"keeps": "9,4"}, KeepCounts(DEPTHS, (Step(2, 9), Step(3, 4)))),
        ({"keeps": "3:4"}, KeepCounts(DEPTHS, (Step(3, 4),))),
        ({"depth": 3}, KeepCounts((2, 3))),
        ({"depth": 3, "alpha": 0.5}, DropFraction((2, 3), 0.5)),
        ({"depth": 3, "keeps": "5"}, KeepCounts((2, 3), (Step(2, 5),))),
    ],
    ids=str,
)
def test_options_choose_the_schedule(
    folder: Path, options: dict[str, Any], schedule: Schedule
) -> None:
    assert Cascade.load(folder, **options).schedule == schedule


@pytest.mark.parametrize(
    "inside", ["", ", alpha=0.3", ", keeps='9,4'", ", depth=2", ", alpha=0.5, depth=2"]
)
def test_the_text_of_a_cascade_loads_it_again(folder: Path, inside: str) -> None:
    spec = f"cascade({str(folder)!r}{inside})"
    ranker = askline.load(spec)
    assert str(ranker) == spec
    again = askline.load(str(ranker)).rank("The rock?", CANDIDATES)
    assert again == ranker.rank("The rock?", CANDIDATES)


def test_a_notebook_shows_a_ranker_in_one_line(folder: Path) -> None:
    shown = repr(Cascade.load(folder))
    assert str(folder) in shown
    assert len(shown) < 250


def test_calibration_and_threshold_come_with_the_folder(folder: Path) -> None:
    ranker = Cascade.load(folder)
    assert ranker.calibration == {2: LogitCalibration(0.5, -1.0)}
    assert ranker.threshold == 0.2


def test_without_a_tuned_schedule_all_go_to_full_depth(tmp_path: Path) -> None:
    ranker = Cascade.load(cascade_folder(tmp_path))
    assert ranker.schedule == KeepCounts(DEPTHS)
    assert ranker.threshold == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 5}, "depth must be one of 2, 3, 4, where there are classifiers, got 5"),
        ({"alpha": 0.3, "keeps": "9"}, "Give alpha or keeps, not both"),
        ({"alpha": 1}, "alpha must be at least 0 and below 1"),
        ({"keeps": "9,8,7"}, "keeps must be at most 2 numbers"),
    ],
    ids=str,
)
def test_options_that_cannot_be_used_are_refused(
    folder: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Cascade.load(folder, **options)


def test_an_option_of_the_wrong_kind_is_a_spec_error(folder: Path) -> None:
    with pytest.raises(SpecError, match="depth must be an integer"):
        askline.load(f"cascade({str(folder)!r}, depth=deep)")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"schedule": {"rows": 3}}, "A schedule must have the form"),
        ({"calibration": {"1": 2}}, "calibration must have the form"),
        ({"calibration": {"1": {"scale": -1, "shift": 0}}}, "scale must be positive"),
        ({"threshold": 2}, "threshold must be a probability from 0 to 1, got 2"),
    ],
    ids=["schedule", "calibration", "falling", "threshold"],
)
def test_a_broken_config_is_refused(tmp_path: Path, config: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Cascade.load(cascade_folder(tmp_path, **config))


def test_a_sequence_of_cascades_is_a_spec(folder: Path) -> None:
    """SR, written as the documentation has it."""
    stages = [f"cascade({str(folder)!r}, depth={depth})" for depth in DEPTHS]
    spec = f"{stages[0]} % 9 >> {stages[1]} % 4 >> {stages[2]}"
    sequence = askline.load(spec).trace("The rock?", CANDIDATES)
    one = Cascade.load(folder, keeps="9,4").trace("The rock?", CANDIDATES)
    assert [hit.index for hit in sequence.hits] == [hit.index for hit in one.hits]
    assert sequence.cost is not None
    assert one.cost is not None
    assert sequence.cost.candidate_layers == 15 * 2 + 9 * 3 + 4 * 4
    assert one.cost.candidate_layers == 15 * 2 + 9 * 1 + 4 * 1


@pytest.mark.parametrize("milliseconds", [0.001, 1, 10, 1_000])
def test_a_deadline_on_the_engine_gives_a_whole_ranking(folder: Path, milliseconds: float) -> None:
    ranker = askline.load(f"wo+rr % 10 >> cascade({str(folder)!r}, alpha=0.3)")
    hits = ranker.rank("The rock?", CANDIDATES, deadline_ms=milliseconds)
    assert sorted(hit.index for hit in hits) == list(range(len(CANDIDATES)))
    keys = [(-hit.stage, -hit.score) for hit in hits]
    assert keys == sorted(keys)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_loaded_cascade_keeps_the_contract(folder: Path, check: Callable[[Ranker], None]) -> None:
    check(Cascade.load(folder, alpha=0.5))


def test_time_runs_out_on_the_rows_named_last(folder: Path) -> None:
    run = Cascade.load(folder).encoder.begin("The rock?", ["a", "the rock lit in a rock"] * 60)
    order = np.arange(120)[::-1].copy()
    asked = iter([False, True])
    logits = run.advance(order, 2, stop=lambda: next(asked, True))
    reached = order[~np.isnan(logits)]
    assert 0 < len(reached) <= 32
    assert reached.min() >= 120 - 32
