from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from askline.errors import InputError
from askline.tuning.candidate_lists import concatenated, make_lists, ranks_of

from .random_tables import table


def test_ranks_are_best_first_and_ties_keep_their_order() -> None:
    assert ranks_of(np.array([[1.0, 3.0, 3.0, 2.0]])).tolist() == [[3, 0, 1, 2]]


def test_whole_lists_stay_as_they_are() -> None:
    drawn = table(questions=3, size=5)
    lists = make_lists([drawn], 5)
    assert lists.labels.tolist() == drawn.labels.reshape(3, 5).tolist()
    assert lists.tokens.tolist() == drawn.tokens.reshape(3, 5).tolist()
    order = np.argsort(-drawn.scores.reshape(3, 3, 5), axis=2)
    assert (np.argsort(lists.ranks, axis=2) == order).all()


def test_shorter_lists_keep_answers_and_own_candidates() -> None:
    drawn = table(questions=20, size=12)
    lists = make_lists([drawn], 4)
    assert (lists.labels.sum(axis=1) == 2).all()
    own = (~drawn.added).reshape(20, 12).sum(axis=1)
    tokens = [set(row) for row in (drawn.tokens * ~drawn.added).reshape(20, 12).tolist()]
    for row in np.flatnonzero(own >= 4).tolist():
        assert set(lists.tokens[row].tolist()) <= tokens[row]


def test_questions_with_too_few_candidates_are_left_out() -> None:
    assert len(make_lists([table(3, 5), table(4, 8)], 6)) == 4
    with pytest.raises(InputError, match="No question of the dev sets has 9 candidates"):
        make_lists([table(3, 5), table(4, 8)], 9)


def test_a_set_weighs_as_the_square_root_of_its_size() -> None:
    weights = make_lists([table(4, 5), table(16, 5)], 5).weights
    assert weights.sum() == pytest.approx(1)
    assert weights[:4].sum() / weights[4:].sum() == pytest.approx(0.5)


def test_a_question_is_in_the_same_fold_at_every_length() -> None:
    uneven = table(4, 6)
    uneven = replace(uneven, sizes=np.array([3, 9, 6, 6]))
    assert make_lists([uneven], 6, folds=3).folds.tolist() == [1, 2, 0]


def test_first_stage_ranks_are_for_whole_lists_only() -> None:
    drawn = table(3, 6, first_stage=True)
    assert make_lists([drawn], 5).first_stage is None
    whole = make_lists([drawn], 6)
    cut = whole.after_first_stage(2)
    best = np.sort(np.argsort(-drawn.first_stage.reshape(3, 6), axis=1)[:, :2], axis=1)  # type: ignore[union-attr]
    assert cut.tokens.tolist() == np.take_along_axis(whole.tokens, best, axis=1).tolist()
    assert sorted(cut.ranks[0, 0].tolist()) == [0, 1]
    with pytest.raises(InputError, match="no scores of a first stage"):
        make_lists([drawn], 5).after_first_stage(2)


def test_concatenated_lists_have_the_same_weight() -> None:
    both = concatenated([make_lists([table(3, 5)], 5), make_lists([table(9, 5)], 5)])
    assert both.weights[:3].sum() == pytest.approx(0.5)
    assert len(both) == 12


def test_lists_record_their_set() -> None:
    first, second = make_lists([table(2, 5), table(3, 5)], 5), make_lists([table(1, 5)], 5)
    assert first.sets.tolist() == [0, 0, 1, 1, 1]
    assert concatenated([first, second, first]).sets.tolist() == [0, 0, 1, 1, 1, 2, 3, 3, 4, 4, 4]
