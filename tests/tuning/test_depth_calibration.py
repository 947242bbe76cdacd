"""The threshold below which nothing answers."""

from __future__ import annotations

import numpy as np
import pytest

from askline.errors import InputError
from askline.rankers.probability import LogitCalibration
from askline.tuning.depth_calibration import no_answer_threshold
from askline.tuning.score_tables import ScoreTable

CHANCES = LogitCalibration(1.0, 0.0)


def table(lists: list[list[tuple[float, bool]]]) -> ScoreTable:
    """One depth; each candidate a chance and whether it answers."""
    pairs = [pair for one in lists for pair in one]
    chances = np.array([chance for chance, _ in pairs])
    logits = np.log(chances / (1 - chances)).astype(np.float32)
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


def test_it_parts_answers_from_the_rest_where_they_can_be_parted() -> None:
    apart = [[(0.8, True), (0.3, False)], [(0.7, True), (0.2, False)]]
    assert no_answer_threshold([table(apart)], CHANCES) == pytest.approx(0.7, abs=1e-4)


def test_a_right_sentence_weighs_twice_what_a_wrong_one_does() -> None:
    # At 0.5, one right sentence more is given, and two lists without answers are answered.
    # At 0.7, those two are silent: as much is gained as is lost, and the lower one is taken.
    lists = [
        [(0.5, True), (0.1, False)],
        [(0.9, True), (0.6, False)],
        [(0.9, True), (0.6, False)],
        [(0.9, True), (0.1, False)],
    ]
    assert no_answer_threshold([table(lists)], CHANCES) == pytest.approx(0.5, abs=1e-4)
    lists[-1] = [(0.9, True), (0.6, False)]
    assert no_answer_threshold([table(lists)], CHANCES) == pytest.approx(0.9, abs=1e-4)


def test_questions_with_one_kind_of_candidate_say_nothing() -> None:
    lists = [[(0.8, True), (0.3, False)]]
    alone = [[(0.2, True)], [(0.99, False)]]
    assert no_answer_threshold([table(lists + alone)], CHANCES) == pytest.approx(0.8, abs=1e-4)


def test_a_set_without_questions_of_both_kinds_is_refused() -> None:
    with pytest.raises(InputError, match="Expected questions that have an answer and another"):
        no_answer_threshold([table([[(0.8, True)], [(0.3, False)]])], CHANCES)


def test_each_table_counts_the_same() -> None:
    high = [[(0.9, True), (0.6, False)]] * 30
    low = [[(0.5, True), (0.1, False)]]
    # By questions, 30 silent ones would win over one right sentence.
    assert no_answer_threshold([table(high), table(low)], CHANCES) == pytest.approx(0.5, abs=1e-4)
