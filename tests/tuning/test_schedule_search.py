"""A schedule measured on a score table gives the same result as the ranker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from askline.engine.layerwise import LayerwiseEncoder, LayerwiseRun
from askline.rankers import Cascade, Cut, Pipeline
from askline.rankers.base import Ranker
from askline.rankers.schedule import KeepCounts, Step
from askline.tuning.schedule_search import Trial, TrialTable, measure, search, tried_counts
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


QUESTIONS = 100
WEIGHTS = np.full(QUESTIONS, 1 / QUESTIONS)


def trial(right: int, cost: float, keep: int, map_: float | None = None) -> Trial:
    """A trial that answers only the first questions correctly."""
    precision = (np.arange(QUESTIONS) < right).astype(float)
    values = precision if map_ is None else np.full(QUESTIONS, map_)
    return Trial((Step(2, keep),), precision, values, np.full(QUESTIONS, cost), precision, WEIGHTS)


def field(*trials: Trial, sets: int = 1) -> TrialTable:
    questions = np.arange(QUESTIONS)
    return TrialTable.of(trials, questions % 5, np.minimum(questions // 50, sets - 1))


FULL, DEAR, FAIR, POOR = trial(80, 1.0, 9), trial(79, 0.6, 5), trial(70, 0.3, 3), trial(60, 0.1, 1)


def test_pareto_front_has_no_trial_beaten_by_a_cheaper_one() -> None:
    beaten = trial(65, 0.5, 4)
    assert field(FULL, beaten, POOR, FAIR, DEAR).pareto_front() == [POOR, FAIR, DEAR, FULL]


@pytest.mark.parametrize(("budget", "taken"), [(0.7, DEAR), (0.5, FAIR), (0.2, POOR), (0.05, POOR)])
def test_the_best_within_the_budget_is_chosen(budget: float, taken: Trial) -> None:
    assert field(FULL, DEAR, FAIR, POOR).best(budget).trial is taken


def mixed(right: set[int], cost: float, agrees: float) -> Trial:
    precision = np.array([float(own in right) for own in range(QUESTIONS)])
    agreement = np.full(QUESTIONS, agrees)
    return Trial((Step(2, 2),), precision, precision, np.full(QUESTIONS, cost), agreement, WEIGHTS)


def test_within_the_error_the_one_closest_to_full_depth_is_chosen() -> None:
    lucky = mixed(set(range(80)), 0.4, agrees=0.8)
    # It loses three questions and wins two: one question less, with an error of two.
    sound = mixed(set(range(3, 82)), 0.5, agrees=0.95)
    assert field(FULL, lucky, sound).best(0.6).trial is sound
    # If it only loses, the difference is significant.
    assert field(FULL, lucky, mixed(set(range(79)), 0.5, agrees=0.95)).best(0.6).trial is lucky


def test_of_equal_trials_the_cheaper_is_chosen() -> None:
    cheap, dear = (mixed(set(range(80)), cost, agrees=0.9) for cost in (0.3, 0.5))
    assert field(FULL, dear, cheap).best(0.6).trial is cheap


ALL = np.array([False, True, True, True])


@pytest.mark.parametrize(
    ("loss", "taken"), [(0.2, FAIR), (0.12, DEAR), (0.001, DEAR)], ids=["ten", "one", "least"]
)
def test_cheapest_surely_loses_no_more_than_allowed(loss: float, taken: Trial) -> None:
    # FAIR loses ten questions in a hundred with an error of three, DEAR one.
    assert field(FULL, DEAR, FAIR, POOR).cheapest(loss, among=ALL).trial is taken


def test_won_questions_do_not_offset_lost_ones() -> None:
    swaps = mixed(set(range(20, 100)), 0.2, agrees=0.6)
    assert field(FULL, DEAR, swaps, POOR).cheapest(0.1, among=ALL).trial is DEAR


def test_map_decides_where_p1_does_not() -> None:
    good, bad = trial(80, 0.6, 6, map_=0.9), trial(80, 0.5, 5, map_=0.7)
    assert field(trial(80, 1.0, 9, map_=0.9), bad, good).best(0.7).trial is good


def test_the_budget_grows_if_it_would_lose_too_much_p1() -> None:
    every = field(FULL, DEAR, FAIR, POOR)
    assert every.best(0.3, loss=0.02).trial is DEAR
    assert every.best(0.3, loss=0.12).trial is DEAR  # FAIR loses 0.1, with an error of 0.03
    assert every.best(0.3, loss=0.14).trial is FAIR


def test_the_budget_grows_if_it_would_lose_too_much_map() -> None:
    full, close = trial(80, 1.0, 9, map_=0.9), trial(80, 0.6, 5, map_=0.89)
    far = trial(80, 0.3, 3, map_=0.8)
    assert field(full, close, far).best(0.3, map_loss=0.02).trial is close
    assert field(full, close, far).best(0.3, map_loss=0.2).trial is far
    assert field(full, far).best(0.3, map_loss=0.02).trial is full


def test_one_set_does_not_offset_the_map_loss_of_another() -> None:
    """The mean does not change: the first fifty questions lose what the others win."""
    full, close = trial(80, 1.0, 9, map_=0.8), trial(80, 0.6, 5, map_=0.79)
    uneven = replace(full, cost=np.full(QUESTIONS, 0.3), keeps=(Step(2, 3),))
    uneven = replace(uneven, average_precision=np.where(np.arange(QUESTIONS) < 50, 0.75, 0.85))
    assert field(full, close, uneven).best(0.3, map_loss=0.02).trial is uneven
    assert field(full, close, uneven, sets=2).best(0.3, map_loss=0.02).trial is close
    assert field(full, close, uneven, sets=2).best(0.3, map_loss=0.06).trial is uneven
    assert field(full, close, uneven, sets=2).best(0.3).trial is uneven


def test_the_choice_can_be_restricted() -> None:
    allowed = np.array([True, False, True, True])
    assert field(FULL, DEAR, FAIR, POOR).best(0.7, among=allowed).trial is FAIR


def test_held_out_questions_reveal_overfitting() -> None:
    """Random trials: the best looks good on the questions that chose it, and on no others."""
    random = np.random.default_rng(0)
    base = np.full(QUESTIONS, 0.5)
    full = Trial(
        (), (random.random(QUESTIONS) < 0.5).astype(np.float64), base, base * 2, base, WEIGHTS
    )
    lucky = [
        Trial(
            (Step(2, k),),
            (random.random(QUESTIONS) < 0.5).astype(np.float64),
            base,
            base,
            base,
            WEIGHTS,
        )
        for k in range(1, 200)
    ]
    choice = field(full, *lucky).best(0.6)
    apparent = choice.trial.p1 - choice.full.p1
    assert choice.held_out.p1 < apparent - 0.03
    assert choice.held_out.cost == pytest.approx(0.5)
