from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from askline.errors import InputError
from askline.evaluation.calibration import expected_calibration_error
from askline.rankers.probability import LogitCalibration
from askline.tuning.schedule_fitting import calibrate, no_answer_threshold
from askline.tuning.score_tables import ScoreTable

from .random_tables import DEPTHS
from .random_tables import table as random_table

UNCALIBRATED = LogitCalibration(1.0, 0.0)


def table(lists: list[list[tuple[float, bool]]]) -> ScoreTable:
    """A table of one depth; per candidate a probability and whether it is an answer."""
    pairs = [pair for one in lists for pair in one]
    probabilities = np.array([probability for probability, _ in pairs])
    logits = np.log(probabilities / (1 - probabilities)).astype(np.float32)
    return ScoreTable(
        "drawn",
        0,
        "model",
        (1,),
        tuple(f"question {number}" for number in range(len(lists))),
        np.array([len(one) for one in lists]),
        np.array([label for _, label in pairs]),
        np.zeros(len(pairs), bool),
        np.ones(len(pairs), np.int64),
        logits[None],
    )


def test_calibration_is_per_depth_and_uses_own_candidates() -> None:
    drawn = random_table(200, 12, seed=4)
    lines = calibrate([drawn])
    own = ~drawn.added
    for row, depth in enumerate(DEPTHS):
        probabilities = lines[depth](drawn.scores[row, own])
        assert expected_calibration_error(probabilities, drawn.labels[own]) < 0.05
    moved = replace(drawn, scores=np.where(drawn.added, 50, drawn.scores).astype(np.float32))
    assert calibrate([moved]) == lines


def test_a_useless_classifier_gives_the_base_rate() -> None:
    drawn = random_table(50, 12, seed=4)
    wrong = replace(drawn, scores=-drawn.scores)
    base = wrong.labels[~wrong.added].mean()
    for line in calibrate([wrong]).values():
        assert line.scale > 0
        np.testing.assert_allclose(line([-3.0, 3.0]), base, atol=0.01)


def test_the_threshold_separates_answers_if_possible() -> None:
    apart = [[(0.8, True), (0.3, False)], [(0.7, True), (0.2, False)]]
    assert no_answer_threshold([table(apart)], UNCALIBRATED) == pytest.approx(0.7, abs=1e-4)


def test_a_right_sentence_weighs_twice_as_much_as_a_wrong_one() -> None:
    # At 0.5, one more right sentence is given, and two unanswerable lists get an answer.
    # At 0.7, those two get no answer: a tie, and the lower threshold is chosen.
    lists = [
        [(0.5, True), (0.1, False)],
        [(0.9, True), (0.6, False)],
        [(0.9, True), (0.6, False)],
        [(0.9, True), (0.1, False)],
    ]
    assert no_answer_threshold([table(lists)], UNCALIBRATED) == pytest.approx(0.5, abs=1e-4)
    lists[-1] = [(0.9, True), (0.6, False)]
    assert no_answer_threshold([table(lists)], UNCALIBRATED) == pytest.approx(0.9, abs=1e-4)


def test_questions_with_one_kind_of_candidate_are_ignored() -> None:
    lists = [[(0.8, True), (0.3, False)]]
    alone = [[(0.2, True)], [(0.99, False)]]
    assert no_answer_threshold([table(lists + alone)], UNCALIBRATED) == pytest.approx(0.8, abs=1e-4)


def test_a_set_without_questions_of_both_kinds_is_refused() -> None:
    with pytest.raises(InputError, match="Expected questions that have an answer and another"):
        no_answer_threshold([table([[(0.8, True)], [(0.3, False)]])], UNCALIBRATED)


def test_each_table_has_the_same_weight() -> None:
    high = [[(0.9, True), (0.6, False)]] * 30
    low = [[(0.5, True), (0.1, False)]]
    # Weighted by questions, 30 unanswerable ones would outweigh one right sentence.
    assert no_answer_threshold([table(high), table(low)], UNCALIBRATED) == pytest.approx(
        0.5, abs=1e-4
    )
