from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from askline.rankers.schedule import Step
from askline.tuning.schedule_search import Trial
from askline.tuning.selection import TrialTable

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
