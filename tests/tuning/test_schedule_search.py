"""A schedule measured on a score table gives the same result as the ranker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from askline.engine.layerwise import LayerwiseEncoder, LayerwiseRun
from askline.rankers import Cascade, Cut, Pipeline
from askline.rankers.base import Ranker
from askline.rankers.schedule import KeepCounts, Step
from askline.tuning.schedule_search import measure, search, tried_counts
from askline.tuning.score_tables import make_lists

from .random_tables import DEPTHS, table


@dataclass
class FromTable(LayerwiseEncoder):
    """An encoder whose candidates are row numbers of a table."""

    scores: NDArray[np.float32]
    all_tokens: NDArray[np.int64]
    depths: tuple[int, ...] = DEPTHS

    def begin(self, question: str, candidates: Sequence[str]) -> FromTableRun:
        return FromTableRun(self, np.array([int(text) for text in candidates]))


@dataclass
class FromTableRun(LayerwiseRun):
    encoder: FromTable
    numbers: NDArray[np.int64]

    @property
    def tokens(self) -> NDArray[np.int64]:
        return self.encoder.all_tokens[self.numbers]

    def advance(
        self,
        rows: NDArray[np.int64],
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float32]:
        return np.asarray(self.encoder.scores[self.encoder.depths.index(depth), self.numbers[rows]])


@dataclass
class LightFromTable(Ranker):
    scores: NDArray[np.float32]

    def score_texts(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(self.scores[[int(text) for text in texts]])


def average_precision(labels: Sequence[bool]) -> float:
    found = [place for place, label in enumerate(labels, start=1) if label]
    return sum(rank / place for rank, place in enumerate(found, start=1)) / len(found)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 12), max_size=2).map(lambda keeps: sorted(keeps, reverse=True)),
    st.sampled_from([0, 3, 7, 12]),
    st.integers(0, 5),
)
def test_a_trial_gives_the_same_as_the_ranker(keeps: list[int], first: int, seed: int) -> None:
    drawn = table(questions=6, size=12, seed=seed, first_stage=True)
    steps = tuple(map(Step, DEPTHS, keeps))
    trial = measure(make_lists([drawn], 12), ((Step(0, first),) if first else ()) + steps)
    judge = Cascade(FromTable(drawn.scores, drawn.tokens), KeepCounts(DEPTHS, steps))
    assert drawn.first_stage is not None
    light = LightFromTable(drawn.first_stage)
    ranker = Pipeline((Cut(light, first), judge)) if first else judge
    for row in range(6):
        numbers = list(range(12 * row, 12 * row + 12))
        ranking = ranker.trace("?", list(map(str, numbers)))
        labels = [bool(drawn.labels[numbers[hit.index]]) for hit in ranking.hits]
        assert trial.precision[row] == labels[0]
        assert trial.average_precision[row] == pytest.approx(average_precision(labels))
        assert ranking.cost is not None
        spent = ranking.cost.token_layers + (0.5 * drawn.tokens[numbers].sum() if first else 0)
        assert trial.cost[row] == pytest.approx(spent / (6 * drawn.tokens[numbers].sum()))


def test_every_classifier_has_a_fixed_cost() -> None:
    drawn = table(questions=3, size=12, first_stage=True)
    plain, priced = make_lists([drawn], 12), make_lists([drawn], 12, stage=3.0)
    steps = (Step(0, 9), Step(2, 6), Step(4, 3))
    assert measure(priced, ()).mean_cost == 1
    spent = (
        measure(plain, steps).cost * 6 * 12 + 3 * 3.0
    )  # in layers of a candidate, three classifiers
    assert measure(priced, steps).cost == pytest.approx(spent / (6 * 12 + 3.0))
    assert measure(priced, steps).p1 == measure(plain, steps).p1
    assert priced.after_first_stage(9).stage == 3.0


@pytest.mark.parametrize("count", [1, 2, 20, 400])
def test_tried_counts_fall_to_one(count: int) -> None:
    found = tried_counts(count)
    assert (found[0], found[-1]) == (count, 1)
    assert found == sorted(set(found), reverse=True)


def test_search_begins_with_full_depth_and_measures_every_trial() -> None:
    lists = make_lists([table(40, 12)], 12)
    trials = search(lists, budget=0.7)
    assert trials[0].keeps == ()
    assert trials[0].mean_cost == pytest.approx(1)
    assert len({trial.keeps for trial in trials}) == len(trials) > 20
    for trial in trials[:: len(trials) // 10]:
        again = measure(lists, trial.keeps)
        assert (again.p1, again.map, again.mean_cost) == (trial.p1, trial.map, trial.mean_cost)


def test_search_finds_the_best_of_all_small_schedules() -> None:
    """Compared with an exhaustive search: the best at each cost is found, or an equal one."""
    lists = make_lists([table(60, 9, seed=3)], 9)
    numbers = tried_counts(9)
    everything = [
        measure(lists, [Step(2, a), Step(4, b)]) for a in numbers for b in numbers if b <= a
    ]
    found = search(lists, budget=1.0)
    for price in (0.5, 0.7, 0.9):
        best = max(trial.p1 for trial in everything if trial.mean_cost <= price)
        ours = max(trial.p1 for trial in found if trial.mean_cost <= price)
        assert ours >= best - 0.02


def test_search_with_a_first_stage_begins_with_its_cut() -> None:
    trials = search(make_lists([table(40, 12, first_stage=True)], 12), budget=0.6, first=True)
    assert trials[0].keeps == ()
    assert all(trial.keeps[0].depth == 0 for trial in trials[1:])
